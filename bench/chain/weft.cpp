#include "workload.hpp"

#include "../harness/harness.hpp"

#include <weft/task.hpp>

void bench::run(bench::state& state) {
  state.measure(chain_levels, chain_result, [] { return weft::sync_wait(lazy_fn<weft::task, chain_levels>()); });
}

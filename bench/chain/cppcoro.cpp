#include "workload.hpp"

#include "../harness/harness.hpp"

#include <cppcoro/sync_wait.hpp>
#include <cppcoro/task.hpp>

void bench::run(bench::state& state) {
  state.measure(chain_levels, chain_result, [] { return cppcoro::sync_wait(lazy_fn<cppcoro::task, chain_levels>()); });
}

#include "workload.hpp"

#include "../harness/handwritten.hpp"
#include "../harness/harness.hpp"

void bench::run(bench::state& state) {
  state.measure(chain_levels, chain_result,
                [] { return handwritten::run(lazy_fn<handwritten::task, chain_levels>()); });
}

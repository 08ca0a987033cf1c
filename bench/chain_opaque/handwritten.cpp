#include "workload.hpp"

#include "../harness/handwritten.hpp"
#include "../harness/harness.hpp"

#ifdef BENCH_HALF
template struct bench::chain_half<handwritten::task, BENCH_HALF>;
#else
void bench::run(bench::state& state) {
  state.measure(chain_levels, chain_result,
                [] { return handwritten::run(level<handwritten::task, chain_levels>::call()); });
}
#endif

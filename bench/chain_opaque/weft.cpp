#include "workload.hpp"

#include "../harness/harness.hpp"

#include <weft/task.hpp>

#ifdef BENCH_HALF
template struct bench::chain_half<weft::task, BENCH_HALF>;
#else
void bench::run(bench::state& state) {
  state.measure(chain_levels, chain_result, [] { return weft::sync_wait(level<weft::task, chain_levels>::call()); });
}
#endif

#include "workload.hpp"

#include "../harness/harness.hpp"

#include <cppcoro/sync_wait.hpp>
#include <cppcoro/task.hpp>

#ifdef BENCH_HALF
template struct bench::chain_half<cppcoro::task, BENCH_HALF>;
#else
void bench::run(bench::state& state) {
  state.measure(chain_levels, chain_result,
                [] { return cppcoro::sync_wait(level<cppcoro::task, chain_levels>::call()); });
}
#endif

#include "workload.hpp"

#include "../harness/harness.hpp"

#include <coro/sync_wait.hpp>
#include <coro/task.hpp>

#ifdef BENCH_HALF
template struct bench::chain_half<coro::task, BENCH_HALF>;
#else
void bench::run(bench::state& state) {
  state.measure(chain_levels, chain_result, [] { return coro::sync_wait(level<coro::task, chain_levels>::call()); });
}
#endif

#include "workload.hpp"

#include "../harness/harness.hpp"

#include <folly/coro/BlockingWait.h>
#include <folly/coro/Task.h>

using folly::coro::Task;

#ifdef BENCH_HALF
template struct bench::chain_half<Task, BENCH_HALF>;
#else
void bench::run(bench::state& state) {
  state.measure(chain_levels, chain_result,
                [] { return folly::coro::blockingWait(level<Task, chain_levels>::call()); });
}
#endif

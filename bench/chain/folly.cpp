#include "workload.hpp"

#include "../harness/harness.hpp"

#include <folly/coro/BlockingWait.h>
#include <folly/coro/Task.h>

void bench::run(bench::state& state) {
  using folly::coro::blockingWait;
  using folly::coro::Task;
  state.measure(chain_levels, chain_result, [] { return blockingWait(lazy_fn<Task, chain_levels>()); });
}

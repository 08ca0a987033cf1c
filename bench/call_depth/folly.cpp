#include "workload.hpp"

#include "../harness/harness.hpp"

#include <folly/coro/BlockingWait.h>
#include <folly/coro/Task.h>

void bench::run(bench::state& state) {
  using folly::coro::blockingWait;
  using folly::coro::Task;
  const std::uint64_t depth = state.size();
  state.measure(depth, sum_result(depth), [&] { return blockingWait(sum_to<Task>(depth)); });
}

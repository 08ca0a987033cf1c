#include "workload.hpp"

#include "../harness/harness.hpp"

#include <folly/coro/BlockingWait.h>
#include <folly/coro/Task.h>

void bench::run(bench::state& state) {
  measure_frames<folly::coro::Task>(state, [](auto task) { return folly::coro::blockingWait(std::move(task)); });
}

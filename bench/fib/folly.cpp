// collectAll; the second child goes on where its parent is.
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <folly/coro/BlockingWait.h>
#include <folly/coro/Collect.h>
#include <folly/coro/Task.h>
#include <folly/executors/CPUThreadPoolExecutor.h>

using folly::coro::Task;

static Task<long> fib(folly::Executor& on, int n) {
  if (n < 2) co_return n;
  auto [a, b] = co_await folly::coro::collectAll(co_withExecutor(&on, fib(on, n - 1)), fib(on, n - 2));
  co_return a + b;
}

void bench::run(bench::state& state) {
  folly::CPUThreadPoolExecutor workers{state.size()};
  state.measure(fib_calls, fib_result,
                [&] { return folly::coro::blockingWait(co_withExecutor(&workers, fib(workers, fib_of))); });
}

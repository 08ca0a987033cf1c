// coro::BoundedQueue with room for one, for just one sender and one receiver, on a thread pool.
#include "workload.hpp"

#include <folly/coro/BlockingWait.h>
#include <folly/coro/BoundedQueue.h>
#include <folly/coro/Collect.h>
#include <folly/coro/Task.h>
#include <folly/executors/CPUThreadPoolExecutor.h>

namespace {

using folly::coro::Task;
using queue = folly::coro::BoundedQueue<std::size_t, true, true>;

Task<std::size_t> echo(queue& there, queue& back) {
  for (std::size_t i = 0; i != bench::pingpong_rounds; ++i) co_await back.enqueue(co_await there.dequeue() + 1);
  co_return 0;
}

Task<std::size_t> call(queue& there, queue& back) {
  std::size_t number = 0;
  for (std::size_t i = 0; i != bench::pingpong_rounds; ++i) {
    co_await there.enqueue(number);
    number = co_await back.dequeue();
  }
  co_return number;
}

Task<std::size_t> both(folly::Executor& on) {
  queue there{1}, back{1};
  auto [nothing, number] = co_await folly::coro::collectAll(co_withExecutor(&on, echo(there, back)),
                                                            co_withExecutor(&on, call(there, back)));
  co_return number;
}

}  // namespace

void bench::run(bench::state& state) {
  folly::CPUThreadPoolExecutor workers{state.size()};
  state.measure(pingpong_rounds, pingpong_rounds,
                [&] { return folly::coro::blockingWait(co_withExecutor(&workers, both(workers))); });
}

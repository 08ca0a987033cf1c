// coro::BoundedQueue for just one sender and one receiver, on a thread pool.
#include "workload.hpp"

#include <folly/coro/BlockingWait.h>
#include <folly/coro/BoundedQueue.h>
#include <folly/coro/Collect.h>
#include <folly/coro/Task.h>
#include <folly/executors/CPUThreadPoolExecutor.h>

namespace {

using folly::coro::Task;
using queue = folly::coro::BoundedQueue<std::size_t, true, true>;

Task<std::size_t> send_all(queue& to) {
  for (std::size_t i = 0; i != bench::spsc_numbers; ++i) co_await to.enqueue(i);
  co_return 0;
}

Task<std::size_t> receive_all(queue& from) {
  std::size_t sum = 0;
  for (std::size_t i = 0; i != bench::spsc_numbers; ++i) sum += co_await from.dequeue();
  co_return sum;
}

Task<std::size_t> both(folly::Executor& on) {
  queue numbers{bench::spsc_room};
  auto [nothing, sum] = co_await folly::coro::collectAll(co_withExecutor(&on, send_all(numbers)),
                                                         co_withExecutor(&on, receive_all(numbers)));
  co_return sum;
}

}  // namespace

void bench::run(bench::state& state) {
  folly::CPUThreadPoolExecutor workers{state.size()};
  state.measure(spsc_numbers, spsc_sum,
                [&] { return folly::coro::blockingWait(co_withExecutor(&workers, both(workers))); });
}

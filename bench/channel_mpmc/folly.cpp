// coro::BoundedQueue, on a thread pool.
#include "workload.hpp"

#include <folly/coro/BlockingWait.h>
#include <folly/coro/BoundedQueue.h>
#include <folly/coro/Collect.h>
#include <folly/coro/Task.h>
#include <folly/executors/CPUThreadPoolExecutor.h>
#include <numeric>
#include <vector>

namespace {

using folly::coro::Task;
using queue = folly::coro::BoundedQueue<std::size_t>;

Task<std::size_t> send(queue& to, std::size_t first, std::size_t end) {
  for (; first != end; ++first) co_await to.enqueue(first);
  co_return 0;
}

Task<std::size_t> receive(queue& from, std::size_t count) {
  std::size_t sum = 0;
  for (; count != 0; --count) sum += co_await from.dequeue();
  co_return sum;
}

Task<std::size_t> all(folly::Executor& on, std::size_t count) {
  queue numbers{bench::mpmc_room};
  std::vector<folly::coro::TaskWithExecutor<std::size_t>> tasks;
  const std::size_t sent = count / bench::mpmc_senders, received = count / bench::mpmc_receivers;
  for (std::size_t i = 0; i != bench::mpmc_senders; ++i)
    tasks.push_back(co_withExecutor(&on, send(numbers, i * sent, (i + 1) * sent)));
  for (std::size_t i = 0; i != bench::mpmc_receivers; ++i)
    tasks.push_back(co_withExecutor(&on, receive(numbers, received)));
  const auto sums = co_await folly::coro::collectAllRange(std::move(tasks));
  co_return std::accumulate(sums.begin(), sums.end(), std::size_t{0});
}

}  // namespace

void bench::run(bench::state& state) {
  folly::CPUThreadPoolExecutor workers{mpmc_threads};
  state.measure(state.size(), sum_of_numbers(state.size()),
                [&] { return folly::coro::blockingWait(co_withExecutor(&workers, all(workers, state.size()))); });
}

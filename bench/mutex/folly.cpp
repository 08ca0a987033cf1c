#include "workload.hpp"

#include <folly/coro/BlockingWait.h>
#include <folly/coro/Collect.h>
#include <folly/coro/Mutex.h>
#include <folly/coro/Task.h>
#include <folly/executors/CPUThreadPoolExecutor.h>
#include <vector>

namespace {

using folly::coro::Task;

Task<void> take_turns(folly::coro::Mutex& turn, std::size_t& number, std::size_t times) {
  for (std::size_t i = 0; i != times; ++i) {
    const auto held = co_await turn.co_scoped_lock();
    ++number;
  }
}

Task<std::size_t> all(folly::Executor& on, std::size_t contenders) {
  folly::coro::Mutex turn;
  std::size_t number = 0;
  std::vector<folly::coro::TaskWithExecutor<void>> tasks;
  for (std::size_t i = 0; i != contenders; ++i)
    tasks.push_back(co_withExecutor(&on, take_turns(turn, number, bench::mutex_locks / contenders)));
  co_await folly::coro::collectAllRange(std::move(tasks));
  co_return number;
}

}  // namespace

void bench::run(bench::state& state) {
  folly::CPUThreadPoolExecutor workers{mutex_threads(state.size())};
  state.measure(mutex_locks, mutex_locks,
                [&] { return folly::coro::blockingWait(co_withExecutor(&workers, all(workers, state.size()))); });
}

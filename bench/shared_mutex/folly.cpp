#include "workload.hpp"

#include <folly/coro/BlockingWait.h>
#include <folly/coro/Collect.h>
#include <folly/coro/SharedMutex.h>
#include <folly/coro/Task.h>
#include <folly/executors/CPUThreadPoolExecutor.h>
#include <vector>

namespace {

using folly::coro::Task;

Task<void> read_mostly(folly::coro::SharedMutexFair& lock, std::size_t& number, std::size_t times) {
  std::size_t seen = 0;
  for (std::size_t i = 1; i <= times; ++i) {
    if (i % bench::reads_a_write == 0) {
      const auto alone = co_await lock.co_scoped_lock();
      ++number;
    } else {
      const auto shared = co_await lock.co_scoped_lock_shared();
      seen += number;
    }
  }
  bench::keep(seen);
}

Task<std::size_t> all(folly::Executor& on, std::size_t contenders) {
  folly::coro::SharedMutexFair lock;
  std::size_t number = 0;
  std::vector<folly::coro::TaskWithExecutor<void>> tasks;
  for (std::size_t i = 0; i != contenders; ++i)
    tasks.push_back(co_withExecutor(&on, read_mostly(lock, number, bench::shared_locks / contenders)));
  co_await folly::coro::collectAllRange(std::move(tasks));
  co_return number;
}

}  // namespace

void bench::run(bench::state& state) {
  folly::CPUThreadPoolExecutor workers{shared_threads(state.size())};
  state.measure(shared_locks, shared_writes(state.size()),
                [&] { return folly::coro::blockingWait(co_withExecutor(&workers, all(workers, state.size()))); });
}

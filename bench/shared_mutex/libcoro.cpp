#include "workload.hpp"

// shared_mutex.hpp takes these for granted.
#include <memory>
#include <stdexcept>

#include <coro/shared_mutex.hpp>
#include <coro/sync_wait.hpp>
#include <coro/task.hpp>
#include <coro/thread_pool.hpp>
#include <coro/when_all.hpp>
#include <vector>

namespace {

using pool = std::unique_ptr<coro::thread_pool>;
using shared_mutex = coro::shared_mutex<coro::thread_pool>;

coro::task<void> read_mostly(pool& on, shared_mutex& lock, std::size_t& number, std::size_t times) {
  co_await on->schedule();
  std::size_t seen = 0;
  for (std::size_t i = 1; i <= times; ++i) {
    if (i % bench::reads_a_write == 0) {
      co_await lock.lock();
      ++number;
      co_await lock.unlock();
    } else {
      co_await lock.lock_shared();
      seen += number;
      co_await lock.unlock_shared();
    }
  }
  bench::keep(seen);
}

std::size_t all(pool& on, std::size_t contenders) {
  shared_mutex lock{on};
  std::size_t number = 0;
  std::vector<coro::task<void>> tasks;
  for (std::size_t i = 0; i != contenders; ++i)
    tasks.push_back(read_mostly(on, lock, number, bench::shared_locks / contenders));
  coro::sync_wait(coro::when_all(std::move(tasks)));
  return number;
}

}  // namespace

void bench::run(bench::state& state) {
  pool workers = coro::thread_pool::make_unique({.thread_count = shared_threads(state.size())});
  state.measure(shared_locks, shared_writes(state.size()), [&] { return all(workers, state.size()); });
}

#include "workload.hpp"

#include "../harness/async_simple_executor.hpp"

#include <async_simple/coro/Collect.h>
#include <async_simple/coro/Lazy.h>
#include <async_simple/coro/SharedMutex.h>
#include <async_simple/coro/SyncAwait.h>
#include <vector>

using async_simple::coro::Lazy;

namespace {

Lazy<> read_mostly(async_simple::coro::SharedMutex& lock, std::size_t& number, std::size_t times) {
  std::size_t seen = 0;
  for (std::size_t i = 1; i <= times; ++i) {
    if (i % bench::reads_a_write == 0) {
      co_await lock.coLock();
      ++number;
      co_await lock.unlock();
    } else {
      co_await lock.coLockShared();
      seen += number;
      co_await lock.unlockShared();
    }
  }
  bench::keep(seen);
}

Lazy<std::size_t> all(std::size_t contenders) {
  async_simple::coro::SharedMutex lock;
  std::size_t number = 0;
  std::vector<Lazy<>> tasks;
  for (std::size_t i = 0; i != contenders; ++i)
    tasks.push_back(read_mostly(lock, number, bench::shared_locks / contenders));
  co_await async_simple::coro::collectAllPara(std::move(tasks));
  co_return number;
}

}  // namespace

void bench::run(bench::state& state) {
  bench::async_simple_executor workers{shared_threads(state.size())};
  state.measure(shared_locks, shared_writes(state.size()),
                [&] { return async_simple::coro::syncAwait(all(state.size()).via(&workers)); });
}

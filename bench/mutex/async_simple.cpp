#include "workload.hpp"

#include "../harness/async_simple_executor.hpp"

#include <async_simple/coro/Collect.h>
#include <async_simple/coro/Lazy.h>
#include <async_simple/coro/Mutex.h>
#include <async_simple/coro/SyncAwait.h>
#include <vector>

using async_simple::coro::Lazy;

namespace {

Lazy<> take_turns(async_simple::coro::Mutex& turn, std::size_t& number, std::size_t times) {
  for (std::size_t i = 0; i != times; ++i) {
    const auto held = co_await turn.coScopedLock();
    ++number;
  }
}

Lazy<std::size_t> all(std::size_t contenders) {
  async_simple::coro::Mutex turn;
  std::size_t number = 0;
  std::vector<Lazy<>> tasks;
  for (std::size_t i = 0; i != contenders; ++i)
    tasks.push_back(take_turns(turn, number, bench::mutex_locks / contenders));
  co_await async_simple::coro::collectAllPara(std::move(tasks));
  co_return number;
}

}  // namespace

// Whoever unlocks runs the next one there and then, on its own thread.
void bench::run(bench::state& state) {
  bench::async_simple_executor workers{mutex_threads(state.size())};
  state.measure(mutex_locks, mutex_locks,
                [&] { return async_simple::coro::syncAwait(all(state.size()).via(&workers)); });
}

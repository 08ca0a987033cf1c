#include "workload.hpp"

#include <coro/mutex.hpp>
#include <coro/sync_wait.hpp>
#include <coro/task.hpp>
#include <coro/thread_pool.hpp>
#include <coro/when_all.hpp>
#include <vector>

namespace {

coro::task<void> take_turns(coro::thread_pool& on, coro::mutex& turn, std::size_t& number, std::size_t times) {
  co_await on.schedule();
  for (std::size_t i = 0; i != times; ++i) {
    const auto held = co_await turn.scoped_lock();
    const std::size_t before = number;
    co_await on.yield();
    number = before + 1;
  }
}

std::size_t all(coro::thread_pool& on, std::size_t contenders) {
  coro::mutex turn;
  std::size_t number = 0;
  std::vector<coro::task<void>> tasks;
  for (std::size_t i = 0; i != contenders; ++i)
    tasks.push_back(take_turns(on, turn, number, bench::held_locks / contenders));
  coro::sync_wait(coro::when_all(std::move(tasks)));
  return number;
}

}  // namespace

void bench::run(bench::state& state) {
  auto workers = coro::thread_pool::make_unique({.thread_count = 1});
  state.measure(held_locks, held_locks, [&] { return all(*workers, state.size()); });
}

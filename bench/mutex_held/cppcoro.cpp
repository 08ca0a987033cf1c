#include "workload.hpp"

#include <cppcoro/async_mutex.hpp>
#include <cppcoro/static_thread_pool.hpp>
#include <cppcoro/sync_wait.hpp>
#include <cppcoro/task.hpp>
#include <cppcoro/when_all.hpp>
#include <vector>

namespace {

cppcoro::task<> take_turns(cppcoro::static_thread_pool& on, cppcoro::async_mutex& turn, std::size_t& number,
                           std::size_t times) {
  co_await on.schedule();
  for (std::size_t i = 0; i != times; ++i) {
    const auto held = co_await turn.scoped_lock_async();
    const std::size_t before = number;
    co_await on.schedule();
    number = before + 1;
  }
}

std::size_t all(cppcoro::static_thread_pool& on, std::size_t contenders) {
  cppcoro::async_mutex turn;
  std::size_t number = 0;
  std::vector<cppcoro::task<>> tasks;
  for (std::size_t i = 0; i != contenders; ++i)
    tasks.push_back(take_turns(on, turn, number, bench::held_locks / contenders));
  cppcoro::sync_wait(cppcoro::when_all(std::move(tasks)));
  return number;
}

}  // namespace

void bench::run(bench::state& state) {
  cppcoro::static_thread_pool workers{1};
  state.measure(held_locks, held_locks, [&] { return all(workers, state.size()); });
}

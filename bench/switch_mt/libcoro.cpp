// yield, on the library's own pool.
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <coro/sync_wait.hpp>
#include <coro/task.hpp>
#include <coro/thread_pool.hpp>
#include <coro/when_all.hpp>
#include <vector>

static coro::task<std::size_t> yields(coro::thread_pool& pool) {
  co_await pool.schedule();
  for (std::size_t i = 0; i != bench::switch_rounds; ++i) co_await pool.yield();
  co_return bench::switch_rounds;
}

void bench::run(bench::state& state) {
  const auto threads = static_cast<std::uint32_t>(threads_of(state.size()));
  const auto pool = coro::thread_pool::make_unique({.thread_count = threads});
  const std::size_t coroutines = coroutines_of(state.size()), switches = coroutines * switch_rounds;
  state.measure(switches, switches, [&] {
    std::vector<coro::task<std::size_t>> all;
    for (std::size_t i = 0; i != coroutines; ++i) all.push_back(yields(*pool));
    const auto ended = coro::sync_wait(coro::when_all(std::move(all)));
    std::size_t switched = 0;
    for (const auto& each : ended) switched += each.return_value();
    return switched;
  });
}

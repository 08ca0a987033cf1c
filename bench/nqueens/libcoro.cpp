// when_all of a row's children, each scheduled on the pool.
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <coro/sync_wait.hpp>
#include <coro/task.hpp>
#include <coro/thread_pool.hpp>
#include <coro/when_all.hpp>
#include <vector>

static coro::task<long> place(coro::thread_pool& pool, bench::board placed, std::size_t row) {
  if (row == bench::queens) co_return 1;
  std::vector<coro::task<long>> below;
  for (std::size_t column = 0; column != bench::queens; ++column)
    if (bench::is_safe(placed, row, column))
      below.push_back(pool.schedule(place(pool, bench::with_queen(placed, row, column), row + 1)));
  if (below.empty()) co_return 0;
  auto ended = co_await coro::when_all(std::move(below));
  long ways = 0;
  for (auto& each : ended) ways += each.return_value();
  co_return ways;
}

void bench::run(bench::state& state) {
  const auto pool = coro::thread_pool::make_unique({.thread_count = static_cast<std::uint32_t>(state.size())});
  state.measure(1, queens_result, [&] { return coro::sync_wait(pool->schedule(place(*pool, board{}, 0))); });
}

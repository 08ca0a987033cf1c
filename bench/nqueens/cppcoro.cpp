// when_all of a row's children, each scheduled on the pool.
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <cppcoro/schedule_on.hpp>
#include <cppcoro/static_thread_pool.hpp>
#include <cppcoro/sync_wait.hpp>
#include <cppcoro/task.hpp>
#include <cppcoro/when_all.hpp>
#include <numeric>
#include <vector>

static cppcoro::task<long> place(cppcoro::static_thread_pool& pool, bench::board placed, std::size_t row) {
  if (row == bench::queens) co_return 1;
  std::vector<cppcoro::task<long>> below;
  for (std::size_t column = 0; column != bench::queens; ++column)
    if (bench::is_safe(placed, row, column))
      below.push_back(cppcoro::schedule_on(pool, place(pool, bench::with_queen(placed, row, column), row + 1)));
  const auto ways = co_await cppcoro::when_all(std::move(below));
  co_return std::accumulate(ways.begin(), ways.end(), 0L);
}

void bench::run(bench::state& state) {
  cppcoro::static_thread_pool pool{static_cast<std::uint32_t>(state.size())};
  state.measure(1, queens_result, [&] { return cppcoro::sync_wait(cppcoro::schedule_on(pool, place(pool, {}, 0))); });
}

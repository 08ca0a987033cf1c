// A row's children are started on the pool.
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <concurrencpp/concurrencpp.h>
#include <memory>
#include <vector>

using pool = std::shared_ptr<concurrencpp::thread_pool_executor>;

static concurrencpp::result<long> place(concurrencpp::executor_tag, pool on, bench::board placed, std::size_t row) {
  if (row == bench::queens) co_return 1;
  std::vector<concurrencpp::result<long>> below;
  for (std::size_t column = 0; column != bench::queens; ++column)
    if (bench::is_safe(placed, row, column))
      below.push_back(place({}, on, bench::with_queen(placed, row, column), row + 1));
  long ways = 0;
  for (auto& each : below) ways += co_await each;
  co_return ways;
}

void bench::run(bench::state& state) {
  const auto on =
      std::make_shared<concurrencpp::thread_pool_executor>("nqueens", state.size(), std::chrono::seconds{60});
  state.measure(1, queens_result, [&] { return place({}, on, board{}, std::size_t{0}).get(); });
  on->shutdown();
}

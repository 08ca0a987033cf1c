// collectAllRange of a row's children, each started on the pool.
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <folly/coro/BlockingWait.h>
#include <folly/coro/Collect.h>
#include <folly/coro/Task.h>
#include <folly/executors/CPUThreadPoolExecutor.h>
#include <numeric>
#include <vector>

using folly::coro::Task;

static Task<long> place(folly::Executor& on, bench::board placed, std::size_t row) {
  if (row == bench::queens) co_return 1;
  std::vector<folly::coro::TaskWithExecutor<long>> below;
  for (std::size_t column = 0; column != bench::queens; ++column)
    if (bench::is_safe(placed, row, column))
      below.push_back(co_withExecutor(&on, place(on, bench::with_queen(placed, row, column), row + 1)));
  const auto ways = co_await folly::coro::collectAllRange(std::move(below));
  co_return std::accumulate(ways.begin(), ways.end(), 0L);
}

void bench::run(bench::state& state) {
  folly::CPUThreadPoolExecutor workers{state.size()};
  state.measure(1, queens_result,
                [&] { return folly::coro::blockingWait(co_withExecutor(&workers, place(workers, {}, 0))); });
}

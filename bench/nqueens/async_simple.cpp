// collectAllPara of a row's children: all are posted.
#include "workload.hpp"

#include "../harness/async_simple_executor.hpp"
#include "../harness/harness.hpp"

#include <async_simple/coro/Collect.h>
#include <async_simple/coro/Lazy.h>
#include <async_simple/coro/SyncAwait.h>
#include <vector>

using async_simple::coro::Lazy;

static Lazy<long> place(bench::board placed, std::size_t row) {
  if (row == bench::queens) co_return 1;
  std::vector<Lazy<long>> below;
  for (std::size_t column = 0; column != bench::queens; ++column)
    if (bench::is_safe(placed, row, column)) below.push_back(place(bench::with_queen(placed, row, column), row + 1));
  long ways = 0;
  for (auto& each : co_await async_simple::coro::collectAllPara(std::move(below))) ways += each.value();
  co_return ways;
}

void bench::run(bench::state& state) {
  async_simple_executor pool{state.size()};
  state.measure(1, queens_result, [&] { return async_simple::coro::syncAwait(place({}, 0).via(&pool)); });
}

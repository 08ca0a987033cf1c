#include "workload.hpp"

#include "../harness/harness.hpp"

#include <numeric>
#include <utility>
#include <vector>
#include <weft/combine.hpp>
#include <weft/pool.hpp>

namespace {

weft::task<long> place(bench::board placed, std::size_t row) {
  if (row == bench::queens) co_return 1;
  std::vector<weft::task<long>> below;
  below.reserve(bench::queens);
  for (std::size_t column = 0; column != bench::queens; ++column)
    if (bench::is_safe(placed, row, column)) below.push_back(place(bench::with_queen(placed, row, column), row + 1));
  const std::vector<long> ways = co_await weft::when_all(std::move(below));
  co_return std::accumulate(ways.begin(), ways.end(), 0L);
}

}  // namespace

void bench::run(bench::state& state) {
  const weft::pool pool{{.threads = static_cast<unsigned>(state.size())}};
  state.measure(1, queens_result, [&] { return weft::sync_wait(weft::start_on(pool.executor(), place({}, 0))); });
}

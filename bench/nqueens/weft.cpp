#include "workload.hpp"

#include "../harness/harness.hpp"

#include <array>
#include <numeric>
#include <weft/combine.hpp>
#include <weft/pool.hpp>

namespace {

weft::task<long> place(bench::board placed, std::size_t row) {
  if (row == bench::queens) co_return 1;
  std::array<unsigned char, bench::queens> columns;  // that are safe
  std::size_t count = 0;
  for (std::size_t column = 0; column != bench::queens; ++column)
    if (bench::is_safe(placed, row, column)) columns[count++] = static_cast<unsigned char>(column);
  std::array<long, bench::queens> ways;
  const auto below = [&](std::size_t i) { return place(bench::with_queen(placed, row, columns[i]), row + 1); };
  const auto end = co_await weft::when_all(count, below, ways.begin());
  co_return std::accumulate(ways.begin(), end, 0L);
}

}  // namespace

void bench::run(bench::state& state) {
  const weft::pool pool{{.threads = static_cast<unsigned>(state.size())}};
  state.measure(1, queens_result, [&] { return weft::sync_wait(weft::start_on(pool.executor(), place({}, 0))); });
}

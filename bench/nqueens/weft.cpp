#include "workload.hpp"

#include "../harness/harness.hpp"

#include <array>
#include <numeric>
#include <ranges>
#include <weft/combine.hpp>
#include <weft/pool.hpp>

namespace {

weft::task<long> place(bench::board placed, std::size_t row) {
  if (row == bench::queens) co_return 1;
  const auto is_safe = [&](std::size_t column) { return bench::is_safe(placed, row, column); };
  const auto below = [&](std::size_t column) { return place(bench::with_queen(placed, row, column), row + 1); };
  auto columns =
      std::views::iota(std::size_t{0}, bench::queens) | std::views::filter(is_safe) | std::views::transform(below);
  std::array<long, bench::queens> ways;
  const auto end = co_await weft::when_all(columns, ways.begin());
  co_return std::accumulate(ways.begin(), end, 0L);
}

}  // namespace

void bench::run(bench::state& state) {
  const weft::pool pool{{.threads = static_cast<unsigned>(state.size())}};
  state.measure(1, queens_result, [&] { return weft::sync_wait(weft::start_on(pool.executor(), place({}, 0))); });
}

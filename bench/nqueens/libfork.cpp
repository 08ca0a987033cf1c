#include "workload.hpp"

#include "../harness/harness.hpp"

#include <libfork/core.hpp>
#include <libfork/schedule.hpp>
#include <numeric>

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // call(…) is the spelling that g++ 12 knows, too

namespace {

constexpr auto place = [](auto place, bench::board placed, std::size_t row) -> lf::task<long> {
  if (row == bench::queens) co_return 1;
  std::array<long, bench::queens> ways{};
  for (std::size_t column = 0; column != bench::queens; ++column)
    if (bench::is_safe(placed, row, column))
      co_await lf::fork(&ways[column], place)(bench::with_queen(placed, row, column), row + 1);
  co_await lf::join;
  co_return std::accumulate(ways.begin(), ways.end(), 0L);
};

}  // namespace

void bench::run(bench::state& state) {
  lf::lazy_pool pool{state.size()};
  state.measure(1, queens_result, [&] { return lf::sync_wait(pool, place, board{}, std::size_t{0}); });
}

// spawn_many of a row's children, of which it is told the most there can be, on the library's own pool.
#include "workload.hpp"

#include "../harness/harness.hpp"

#define TMC_PRIORITY_COUNT 1
#define TMC_TRIVIAL_TASK
#define TMC_IMPL
#include <array>
#include <numeric>
#include <tmc/all_headers.hpp>

static tmc::task<long> place(bench::board placed, std::size_t row) {
  if (row == bench::queens) co_return 1;
  std::array<tmc::task<long>, bench::queens> below;
  std::size_t count = 0;
  for (std::size_t column = 0; column != bench::queens; ++column)
    if (bench::is_safe(placed, row, column)) below[count++] = place(bench::with_queen(placed, row, column), row + 1);
  const std::array<long, bench::queens> ways =
      co_await tmc::spawn_many<bench::queens>(below.begin(), below.begin() + static_cast<std::ptrdiff_t>(count));
  co_return std::accumulate(ways.begin(), ways.begin() + static_cast<std::ptrdiff_t>(count), 0L);
}

void bench::run(bench::state& state) {
  tmc::cpu_executor().set_thread_count(state.size()).init();
  state.measure(1, queens_result, [&] { return tmc::post_waitable(tmc::cpu_executor(), place({}, 0), 0).get(); });
  tmc::cpu_executor().teardown();
}

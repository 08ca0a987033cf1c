// A task group for each row: all children but the last are spawned, that one is a call.
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <tbb/global_control.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>
#include <numeric>

static long place(const bench::board& placed, std::size_t row) {
  if (row == bench::queens) return 1;
  std::array<long, bench::queens> ways{};
  std::array<std::size_t, bench::queens> safe;
  std::size_t count = 0;
  for (std::size_t column = 0; column != bench::queens; ++column)
    if (bench::is_safe(placed, row, column)) safe[count++] = column;
  if (count == 0) return 0;
  tbb::task_group all;
  for (std::size_t i = 0; i + 1 != count; ++i)
    all.run([&ways, i, row, next = bench::with_queen(placed, row, safe[i])] { ways[i] = place(next, row + 1); });
  ways[count - 1] = place(bench::with_queen(placed, row, safe[count - 1]), row + 1);
  all.wait();
  return std::accumulate(ways.begin(), ways.end(), 0L);
}

void bench::run(bench::state& state) {
  const tbb::global_control limit{tbb::global_control::max_allowed_parallelism, state.size()};
  tbb::task_arena arena{static_cast<int>(state.size())};
  state.measure(1, queens_result, [&] { return arena.execute([] { return place({}, 0); }); });
}

// A task group for each row: all children but the last are spawned, that one is a call.
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <numeric>
#include <taskflow/taskflow.hpp>

static long place(tf::Executor& executor, const bench::board& placed, std::size_t row) {
  if (row == bench::queens) return 1;
  std::array<long, bench::queens> ways{};
  std::array<std::size_t, bench::queens> safe;
  std::size_t count = 0;
  for (std::size_t column = 0; column != bench::queens; ++column)
    if (bench::is_safe(placed, row, column)) safe[count++] = column;
  if (count == 0) return 0;
  auto all = executor.task_group();
  for (std::size_t i = 0; i + 1 != count; ++i)
    all.silent_async([&executor, &ways, i, row, next = bench::with_queen(placed, row, safe[i])] {
      ways[i] = place(executor, next, row + 1);
    });
  ways[count - 1] = place(executor, bench::with_queen(placed, row, safe[count - 1]), row + 1);
  all.corun();
  return std::accumulate(ways.begin(), ways.end(), 0L);
}

void bench::run(bench::state& state) {
  tf::Executor executor{state.size()};
  state.measure(1, queens_result, [&] { return executor.async([&] { return place(executor, {}, 0); }).get(); });
}

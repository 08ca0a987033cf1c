// A task group for each node: all children but the last are spawned, that one is a call.
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <array>
#include <numeric>
#include <taskflow/taskflow.hpp>

static long skynet(tf::Executor& executor, long number, int depth) {
  if (depth == 0) return number;
  std::array<long, bench::skynet_width> sums;
  auto all = executor.task_group();
  for (std::size_t i = 0; i + 1 != sums.size(); ++i)
    all.silent_async([&executor, &sums, i, number, depth] {
      sums[i] = skynet(executor, number * 10 + static_cast<long>(i), depth - 1);
    });
  sums.back() = skynet(executor, number * 10 + 9, depth - 1);
  all.corun();
  return std::accumulate(sums.begin(), sums.end(), 0L);
}

void bench::run(bench::state& state) {
  tf::Executor executor{state.size()};
  state.measure(1, skynet_result,
                [&] { return executor.async([&] { return skynet(executor, 0, skynet_depth); }).get(); });
}

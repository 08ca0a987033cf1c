// A task group for each node: all children but the last are spawned, that one is a call.
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <tbb/global_control.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>
#include <array>
#include <numeric>

static long skynet(long number, int depth) {
  if (depth == 0) return number;
  std::array<long, bench::skynet_width> sums;
  tbb::task_group all;
  for (std::size_t i = 0; i + 1 != sums.size(); ++i)
    all.run([&sums, i, number, depth] { sums[i] = skynet(number * 10 + static_cast<long>(i), depth - 1); });
  sums.back() = skynet(number * 10 + 9, depth - 1);
  all.wait();
  return std::accumulate(sums.begin(), sums.end(), 0L);
}

void bench::run(bench::state& state) {
  const tbb::global_control limit{tbb::global_control::max_allowed_parallelism, state.size()};
  tbb::task_arena arena{static_cast<int>(state.size())};
  state.measure(1, skynet_result, [&] { return arena.execute([] { return skynet(0, skynet_depth); }); });
}

// forkJoin of ten, on plain functions.
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <citor/thread_pool.h>
#include <array>
#include <numeric>

static long skynet(citor::ThreadPool& pool, long number, int depth) {
  if (depth == 0) return number;
  std::array<long, bench::skynet_width> sums;
  const auto child = [&](std::size_t i) {
    return [&sums, &pool, number, depth, i] { sums[i] = skynet(pool, number * 10 + static_cast<long>(i), depth - 1); };
  };
  pool.forkJoin<citor::CcdLocalForkJoinHints>(child(0), child(1), child(2), child(3), child(4), child(5), child(6),
                                              child(7), child(8), child(9));
  return std::accumulate(sums.begin(), sums.end(), 0L);
}

void bench::run(bench::state& state) {
  citor::ThreadPool pool{state.size()};
  state.measure(1, skynet_result, [&] { return skynet(pool, 0, skynet_depth); });
}

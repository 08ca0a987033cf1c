// collectAllRange of a node's children, each started on the pool, whose line is first in, first out: a hundredth of the tree.
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <folly/coro/BlockingWait.h>
#include <folly/coro/Collect.h>
#include <folly/coro/Task.h>
#include <folly/executors/CPUThreadPoolExecutor.h>
#include <numeric>
#include <vector>

using folly::coro::Task;

static Task<long> skynet(folly::Executor& on, long number, int depth) {
  if (depth == 0) co_return number;
  std::vector<folly::coro::TaskWithExecutor<long>> below;
  for (std::size_t i = 0; i != bench::skynet_width; ++i)
    below.push_back(co_withExecutor(&on, skynet(on, number * 10 + static_cast<long>(i), depth - 1)));
  const auto sums = co_await folly::coro::collectAllRange(std::move(below));
  co_return std::accumulate(sums.begin(), sums.end(), 0L);
}

void bench::run(bench::state& state) {
  folly::CPUThreadPoolExecutor workers{state.size()};
  state.measure(skynet_part, skynet_part_result, [&] {
    return folly::coro::blockingWait(co_withExecutor(&workers, skynet(workers, 0, skynet_part_depth)));
  });
}

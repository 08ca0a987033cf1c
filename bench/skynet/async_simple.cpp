// collectAllPara of a node's children: all are posted, to a line that is first in, first out: a hundredth of the tree.
#include "workload.hpp"

#include "../harness/async_simple_executor.hpp"
#include "../harness/harness.hpp"

#include <async_simple/coro/Collect.h>
#include <async_simple/coro/Lazy.h>
#include <async_simple/coro/SyncAwait.h>
#include <vector>

using async_simple::coro::Lazy;

static Lazy<long> skynet(long number, int depth) {
  if (depth == 0) co_return number;
  std::vector<Lazy<long>> below;
  for (std::size_t i = 0; i != bench::skynet_width; ++i)
    below.push_back(skynet(number * 10 + static_cast<long>(i), depth - 1));
  long sum = 0;
  for (auto& each : co_await async_simple::coro::collectAllPara(std::move(below))) sum += each.value();
  co_return sum;
}

void bench::run(bench::state& state) {
  async_simple_executor pool{state.size()};
  state.measure(skynet_part, skynet_part_result,
                [&] { return async_simple::coro::syncAwait(skynet(0, skynet_part_depth).via(&pool)); });
}

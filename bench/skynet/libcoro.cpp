// when_all of a node's children, each scheduled on the pool, whose line is first in, first out: a hundredth of the tree.
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <coro/sync_wait.hpp>
#include <coro/task.hpp>
#include <coro/thread_pool.hpp>
#include <coro/when_all.hpp>
#include <vector>

static coro::task<long> skynet(coro::thread_pool& pool, long number, int depth) {
  if (depth == 0) co_return number;
  std::vector<coro::task<long>> below(bench::skynet_width);
  for (std::size_t i = 0; i != below.size(); ++i)
    below[i] = pool.schedule(skynet(pool, number * 10 + static_cast<long>(i), depth - 1));
  auto ended = co_await coro::when_all(std::move(below));
  long sum = 0;
  for (auto& each : ended) sum += each.return_value();
  co_return sum;
}

void bench::run(bench::state& state) {
  const auto pool = coro::thread_pool::make_unique({.thread_count = static_cast<std::uint32_t>(state.size())});
  state.measure(skynet_part, skynet_part_result,
                [&] { return coro::sync_wait(pool->schedule(skynet(*pool, 0, skynet_part_depth))); });
}

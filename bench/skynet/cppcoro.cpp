// when_all of a node's children, each scheduled on the pool.
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <cppcoro/schedule_on.hpp>
#include <cppcoro/static_thread_pool.hpp>
#include <cppcoro/sync_wait.hpp>
#include <cppcoro/task.hpp>
#include <cppcoro/when_all.hpp>
#include <numeric>
#include <vector>

static cppcoro::task<long> skynet(cppcoro::static_thread_pool& pool, long number, int depth) {
  if (depth == 0) co_return number;
  std::vector<cppcoro::task<long>> below(bench::skynet_width);
  for (std::size_t i = 0; i != below.size(); ++i)
    below[i] = cppcoro::schedule_on(pool, skynet(pool, number * 10 + static_cast<long>(i), depth - 1));
  const auto sums = co_await cppcoro::when_all(std::move(below));
  co_return std::accumulate(sums.begin(), sums.end(), 0L);
}

void bench::run(bench::state& state) {
  cppcoro::static_thread_pool pool{static_cast<std::uint32_t>(state.size())};
  state.measure(1, skynet_result,
                [&] { return cppcoro::sync_wait(cppcoro::schedule_on(pool, skynet(pool, 0, skynet_depth))); });
}

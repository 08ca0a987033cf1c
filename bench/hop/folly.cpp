// A task does not move: it awaits one on the other executor.
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <folly/coro/BlockingWait.h>
#include <folly/coro/Collect.h>
#include <folly/coro/Task.h>
#include <folly/executors/CPUThreadPoolExecutor.h>
#include <numeric>
#include <vector>

namespace {

using folly::coro::Task;

Task<void> there() { co_return; }

Task<std::size_t> hop(folly::Executor& other) {
  for (std::size_t i = 0; i != bench::hop_rounds; ++i) co_await co_withExecutor(&other, there());
  co_return bench::hop_rounds;
}

}  // namespace

void bench::run(bench::state& state) {
  folly::CPUThreadPoolExecutor one{1}, other{1};
  const std::size_t hops = hop_tasks * hop_rounds;
  state.measure(hops, hops, [&] {
    std::vector<folly::coro::TaskWithExecutor<std::size_t>> all;
    for (std::size_t i = 0; i != hop_tasks; ++i) all.push_back(co_withExecutor(&one, hop(other)));
    const auto each = folly::coro::blockingWait(folly::coro::collectAllRange(std::move(all)));
    return std::accumulate(each.begin(), each.end(), std::size_t{0});
  });
}

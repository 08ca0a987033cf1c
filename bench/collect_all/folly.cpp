#include "workload.hpp"

#include "../harness/harness.hpp"

#include <folly/coro/BlockingWait.h>
#include <folly/coro/Collect.h>
#include <folly/coro/Task.h>
#include <numeric>

void bench::run(bench::state& state) {
  state.measure(1, collect_all_result, [] {
    const auto results = folly::coro::blockingWait(folly::coro::collectAllRange(make_chains<folly::coro::Task>()));
    return std::accumulate(results.begin(), results.end(), 0L);
  });
}

#include "workload.hpp"

#include <folly/CancellationToken.h>
#include <folly/coro/Baton.h>
#include <folly/coro/BlockingWait.h>
#include <folly/coro/Collect.h>
#include <folly/coro/Task.h>

namespace {

using folly::coro::Task;

Task<std::size_t> slow() {
  const auto token = co_await folly::coro::co_current_cancellation_token;
  folly::coro::Baton told;
  folly::CancellationCallback stop{token, [&] { told.post(); }};
  co_await told;
  co_return 0;
}
Task<std::size_t> quick() { co_return 1; }

Task<std::size_t> race() {
  std::size_t won = 0;
  for (std::size_t i = 0; i != bench::races; ++i) won += (co_await folly::coro::collectAny(slow(), quick())).first;
  co_return won;
}

}  // namespace

void bench::run(bench::state& state) {
  state.measure(races, races, [] { return folly::coro::blockingWait(race()); });
}

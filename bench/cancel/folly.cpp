#include "workload.hpp"

#include <folly/CancellationToken.h>
#include <folly/coro/AsyncScope.h>
#include <folly/coro/Baton.h>
#include <folly/coro/BlockingWait.h>
#include <folly/coro/Task.h>
#include <folly/executors/InlineExecutor.h>
#include <utility>

namespace {

using folly::coro::CancellableAsyncScope;
using folly::coro::Task;

// Nothing in folly::coro waits for a cancellation alone, so each leaf has its callback, as its own primitives do.
Task<void> leaf(std::size_t& ended) {
  const auto token = co_await folly::coro::co_current_cancellation_token;
  folly::coro::Baton told;
  {
    folly::CancellationCallback stop{token, [&] { told.post(); }};
    co_await told;
  }
  ++ended;
}

Task<void> node(int depth, std::size_t& ended) {
  folly::CancellationToken token = co_await folly::coro::co_current_cancellation_token;
  CancellableAsyncScope scope{std::move(token)};
  for (std::size_t i = 0; i != bench::children_of_a_node; ++i)
    scope.add(folly::coro::co_withExecutor(&folly::InlineExecutor::instance(),
                                           depth == 1 ? leaf(ended) : node(depth - 1, ended)));
  co_await scope.joinAsync();
}

class tree {
 public:
  explicit tree(std::size_t leaves) {
    scope_.add(folly::coro::co_withExecutor(&folly::InlineExecutor::instance(), node(bench::depth_of(leaves), ended_)));
  }
  tree(const tree&) = delete;

  std::size_t stop() {
    folly::coro::blockingWait(scope_.cancelAndJoinAsync());
    return ended_;
  }

 private:
  std::size_t ended_ = 0;
  CancellableAsyncScope scope_;
};

}  // namespace

void bench::run(bench::state& state) { measure_cancel<tree>(state); }

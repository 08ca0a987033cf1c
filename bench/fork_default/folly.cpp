#include "workload.hpp"

#include <folly/coro/AsyncScope.h>
#include <folly/coro/BlockingWait.h>
#include <folly/coro/Task.h>
#include <folly/executors/InlineExecutor.h>

namespace {

folly::coro::Task<void> trivial(std::size_t& ended) {
  ++ended;
  co_return;
}

}  // namespace

// What is added to an AsyncScope can't be awaited by itself: all are joined.
void bench::run(bench::state& state) {
  state.measure(state.size(), state.size(), [&] {
    std::size_t ended = 0;
    folly::coro::AsyncScope scope;
    for (std::size_t i = 0; i != state.size(); ++i)
      scope.add(folly::coro::co_withExecutor(&folly::InlineExecutor::instance(), trivial(ended)));
    folly::coro::blockingWait(scope.joinAsync());
    return ended;
  });
}

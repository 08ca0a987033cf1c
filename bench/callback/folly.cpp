#include "awaiter.hpp"
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <folly/coro/BlockingWait.h>
#include <folly/coro/Task.h>

void bench::run(bench::state& state) {
  constexpr auto await_increment = [](std::uint64_t value) { return increment{value}; };
  state.measure(callback_awaits, callback_awaits,
                [&] { return folly::coro::blockingWait(count_by_callback<folly::coro::Task>(await_increment)); });
}

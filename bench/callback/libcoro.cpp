#include "awaiter.hpp"
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <coro/sync_wait.hpp>
#include <coro/task.hpp>

void bench::run(bench::state& state) {
  constexpr auto await_increment = [](std::uint64_t value) { return increment{value}; };
  state.measure(callback_awaits, callback_awaits,
                [&] { return coro::sync_wait(count_by_callback<coro::task>(await_increment)); });
}

#include "awaiter.hpp"
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <cppcoro/sync_wait.hpp>
#include <cppcoro/task.hpp>

void bench::run(bench::state& state) {
  constexpr auto await_increment = [](std::uint64_t value) { return increment{value}; };
  state.measure(callback_awaits, callback_awaits,
                [&] { return cppcoro::sync_wait(count_by_callback<cppcoro::task>(await_increment)); });
}

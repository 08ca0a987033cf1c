#include "workload.hpp"

#include "../harness/harness.hpp"

#include <coro/sync_wait.hpp>
#include <coro/task.hpp>

void bench::run(bench::state& state) {
  const std::uint64_t depth = state.size();
  state.measure(depth, sum_result(depth), [&] { return coro::sync_wait(sum_to<coro::task>(depth)); });
}

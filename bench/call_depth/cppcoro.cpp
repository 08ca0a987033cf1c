#include "workload.hpp"

#include "../harness/harness.hpp"

#include <cppcoro/sync_wait.hpp>
#include <cppcoro/task.hpp>

void bench::run(bench::state& state) {
  const std::uint64_t depth = state.size();
  state.measure(depth, sum_result(depth), [&] { return cppcoro::sync_wait(sum_to<cppcoro::task>(depth)); });
}

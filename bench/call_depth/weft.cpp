#include "workload.hpp"

#include "../harness/harness.hpp"

#include <weft/task.hpp>

void bench::run(bench::state& state) {
  const std::uint64_t depth = state.size();
  state.measure(depth, sum_result(depth), [&] { return weft::sync_wait(sum_to<weft::task>(depth)); });
}

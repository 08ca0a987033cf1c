#include "workload.hpp"

#include "../harness/handwritten.hpp"
#include "../harness/harness.hpp"

void bench::run(bench::state& state) {
  const std::uint64_t depth = state.size();
  state.measure(depth, sum_result(depth), [&] { return handwritten::run(sum_to<handwritten::task>(depth)); });
}

#include "workload.hpp"

#include "../harness/harness.hpp"

#include <concurrencpp/concurrencpp.h>

void bench::run(bench::state& state) {
  const std::uint64_t depth = state.size();
  state.measure(depth, sum_result(depth), [&] { return sum_to<concurrencpp::lazy_result>(depth).run().get(); });
}

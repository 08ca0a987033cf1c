// See chain/toomanycooks.cpp for the executor and the options.
#include "workload.hpp"

#include "../harness/harness.hpp"

#define TMC_PRIORITY_COUNT 1
#define TMC_TRIVIAL_TASK
#include <tmc/ex_manual_st.hpp>
#include <tmc/sync.hpp>
#include <tmc/task.hpp>

void bench::run(bench::state& state) {
  tmc::ex_manual_st executor;
  executor.init();
  const std::uint64_t depth = state.size();
  state.measure(depth, sum_result(depth), [&] {
    auto sum = tmc::post_waitable(executor, sum_to<tmc::task>(depth));
    executor.run_all();
    return sum.get();
  });
}

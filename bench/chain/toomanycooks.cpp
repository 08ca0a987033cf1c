// The executor that is pumped by hand, so that no second thread takes part, and the two options that the library's own
// benchmarks set.
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
  state.measure(chain_levels, chain_result, [&] {
    auto result = tmc::post_waitable(executor, lazy_fn<tmc::task, chain_levels>());
    executor.run_all();
    return result.get();
  });
}

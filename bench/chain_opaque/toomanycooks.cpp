// See chain/toomanycooks.cpp for the executor and the options.
#include "workload.hpp"

#include "../harness/harness.hpp"

#define TMC_PRIORITY_COUNT 1
#define TMC_TRIVIAL_TASK
#include <tmc/ex_manual_st.hpp>
#include <tmc/sync.hpp>
#include <tmc/task.hpp>

#ifdef BENCH_HALF
template struct bench::chain_half<tmc::task, BENCH_HALF>;
#else
void bench::run(bench::state& state) {
  tmc::ex_manual_st executor;
  executor.init();
  state.measure(chain_levels, chain_result, [&] {
    auto result = tmc::post_waitable(executor, level<tmc::task, chain_levels>::call());
    executor.run_all();
    return result.get();
  });
}
#endif

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
  measure_frames<tmc::task>(state, [&](auto task) {
    auto result = tmc::post_waitable(executor, std::move(task));
    executor.run_all();
    return result.get();
  });
}

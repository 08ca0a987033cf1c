// See chain/toomanycooks.cpp for the executor and the options.
#include "awaiter.hpp"
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
  constexpr auto await_increment = [](std::uint64_t value) { return increment{value}; };
  state.measure(callback_awaits, callback_awaits, [&] {
    auto result = tmc::post_waitable(executor, count_by_callback<tmc::task>(await_increment));
    executor.run_all();
    return result.get();
  });
}

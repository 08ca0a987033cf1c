#include "workload.hpp"

#define TMC_PRIORITY_COUNT 1
#define TMC_TRIVIAL_TASK
#define TMC_IMPL
#include <tmc/all_headers.hpp>

static tmc::task<void> sets(std::atomic<bool>& flag) {
  flag.store(true, std::memory_order_release);
  co_return;
}

void bench::run(bench::state& state) {
  tmc::cpu_executor().set_thread_count(threads_of(state.size())).init();
  wake_ups(state, [](std::atomic<bool>& ran) { tmc::post(tmc::cpu_executor(), sets(ran), 0); });
  tmc::cpu_executor().teardown();
}

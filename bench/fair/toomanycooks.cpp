#include "workload.hpp"

#define TMC_PRIORITY_COUNT 1
#define TMC_TRIVIAL_TASK
#define TMC_IMPL
#include <future>
#include <tmc/all_headers.hpp>
#include <vector>

static tmc::task<void> sets(std::atomic<bool>& flag) {
  flag.store(true, std::memory_order_release);
  co_return;
}

static tmc::task<void> yields(const std::atomic<bool>& over) {
  while (!over.load(std::memory_order_relaxed)) co_await tmc::reschedule();
}

void bench::run(bench::state& state) {
  tmc::cpu_executor().set_thread_count(state.size()).init();
  std::atomic<bool> over{false};
  std::vector<std::future<void>> ends;
  for (std::size_t i = 0; i != yielding_tasks; ++i)
    ends.push_back(tmc::post_waitable(tmc::cpu_executor(), yields(over), 0));
  short_ones(state, over, [](std::atomic<bool>& ran) { tmc::post(tmc::cpu_executor(), sets(ran), 0); });
  over = true;
  for (auto& each : ends) each.get();
  tmc::cpu_executor().teardown();
}

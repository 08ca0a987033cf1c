// reschedule, on the library's own pool.
#include "workload.hpp"

#include "../harness/harness.hpp"

#define TMC_PRIORITY_COUNT 1
#define TMC_TRIVIAL_TASK
#define TMC_IMPL
#include <atomic>
#include <tmc/all_headers.hpp>
#include <vector>

static tmc::task<void> yields(std::atomic<std::size_t>& switches) {
  for (std::size_t i = 0; i != bench::switch_rounds; ++i) co_await tmc::reschedule();
  switches.fetch_add(bench::switch_rounds, std::memory_order_relaxed);
}

static tmc::task<std::size_t> all(std::size_t coroutines) {
  std::atomic<std::size_t> switches{0};
  std::vector<tmc::task<void>> tasks;
  for (std::size_t i = 0; i != coroutines; ++i) tasks.push_back(yields(switches));
  co_await tmc::spawn_many(tasks);
  co_return switches.load();
}

void bench::run(bench::state& state) {
  tmc::cpu_executor().set_thread_count(threads_of(state.size())).init();
  const std::size_t coroutines = coroutines_of(state.size()), switches = coroutines * switch_rounds;
  state.measure(switches, switches, [&] { return tmc::post_waitable(tmc::cpu_executor(), all(coroutines), 0).get(); });
  tmc::cpu_executor().teardown();
}

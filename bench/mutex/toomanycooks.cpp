#include "workload.hpp"

#define TMC_PRIORITY_COUNT 1
#define TMC_TRIVIAL_TASK
#define TMC_IMPL
#include <tmc/all_headers.hpp>
#include <vector>

namespace {

tmc::task<void> take_turns(tmc::mutex& turn, std::size_t& number, std::size_t times) {
  for (std::size_t i = 0; i != times; ++i) {
    const auto held = co_await turn.lock_scope();
    ++number;
  }
}

tmc::task<std::size_t> all(std::size_t contenders) {
  tmc::mutex turn;
  std::size_t number = 0;
  std::vector<tmc::task<void>> tasks;
  for (std::size_t i = 0; i != contenders; ++i)
    tasks.push_back(take_turns(turn, number, bench::mutex_locks / contenders));
  co_await tmc::spawn_many(tasks.begin(), tasks.end());
  co_return number;
}

}  // namespace

void bench::run(bench::state& state) {
  tmc::cpu_executor().set_thread_count(mutex_threads(state.size())).init();
  state.measure(mutex_locks, mutex_locks,
                [&] { return tmc::post_waitable(tmc::cpu_executor(), all(state.size()), 0).get(); });
  tmc::cpu_executor().teardown();
}

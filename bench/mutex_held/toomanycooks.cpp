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
    const std::size_t before = number;
    co_await tmc::reschedule();
    number = before + 1;
  }
}

tmc::task<std::size_t> all(std::size_t contenders) {
  tmc::mutex turn;
  std::size_t number = 0;
  std::vector<tmc::task<void>> tasks;
  for (std::size_t i = 0; i != contenders; ++i)
    tasks.push_back(take_turns(turn, number, bench::held_locks / contenders));
  co_await tmc::spawn_many(tasks.begin(), tasks.end());
  co_return number;
}

}  // namespace

void bench::run(bench::state& state) {
  tmc::cpu_executor().set_thread_count(1).init();
  state.measure(held_locks, held_locks,
                [&] { return tmc::post_waitable(tmc::cpu_executor(), all(state.size()), 0).get(); });
  tmc::cpu_executor().teardown();
}

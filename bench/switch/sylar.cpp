// Without a scheduler. LioNet's are the same, but it aborts at the end of a thread that had one.
#include "workload.hpp"

#include "../harness/sylar.hpp"

void bench::run(bench::state& state) {
  const auto own = sylar::Fiber::GetThis();
  std::size_t turns = 0;
  bool over = false;
  std::vector<sylar::Fiber::ptr> all;
  const auto takes_turns = [&] {
    auto* const self = sylar::Fiber::GetThis().get();
    while (!over) {
      ++turns;
      self->back();
    }
  };
  for (std::size_t i = 0; i != state.size(); ++i)
    all.push_back(std::make_shared<sylar::Fiber>(takes_turns, switch_stack, true));
  measure_switches(state, turns, [&] {
    for (auto& one : all) one->call();
  });
  over = true;
  for (auto& one : all) one->call();  // it aborts where one goes that has not ended
}

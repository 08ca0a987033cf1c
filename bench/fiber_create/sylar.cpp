// Without a scheduler: its stacks come from malloc. LioNet's are the same, but it aborts at the end of a thread that had one.
#include "workload.hpp"

#include "../harness/sylar.hpp"

void bench::run(bench::state& state) {
  const auto own = sylar::Fiber::GetThis();
  std::vector<sylar::Fiber::ptr> all;
  all.reserve(state.size());
  measure_creation(state, [&](std::size_t count) {
    std::size_t ended = 0;
    for (std::size_t i = 0; i != count; ++i)
      all.push_back(std::make_shared<sylar::Fiber>([&] { ++ended; }, created_stack, true));
    for (auto& one : all) one->call();
    all.clear();
    return ended;
  });
}

#include "workload.hpp"

#include "../harness/libcopp.hpp"

#include <vector>

void bench::run(bench::state& state) {
  libcopp_stacks stacks{state.size(), created_stack};
  std::vector<libcopp_stacks::coroutine::ptr_t> all;
  all.reserve(state.size());
  measure_creation(state, [&](std::size_t count) {
    std::size_t ended = 0;
    for (std::size_t i = 0; i != count; ++i) all.push_back(stacks.make([&] { ++ended; }));
    for (auto& one : all) one->start();
    all.clear();
    return ended;
  });
}

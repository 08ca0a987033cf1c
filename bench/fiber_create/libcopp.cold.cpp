// With guards, from the system and back to it: its own allocator, which is what it takes where no pool is asked for.
#include "workload.hpp"

#include "../harness/libcopp.hpp"

#include <vector>

void bench::run(bench::state& state) {
  std::vector<copp::coroutine_context_default::ptr_t> all;
  all.reserve(state.size());
  measure_creation(state, [&](std::size_t count) {
    std::size_t ended = 0;
    for (std::size_t i = 0; i != count; ++i)
      all.push_back(copp::coroutine_context_default::create(libcopp_stacks::call_of([&] { ++ended; }), created_stack));
    for (auto& one : all) one->start();
    all.clear();
    return ended;
  });
}

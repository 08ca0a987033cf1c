// Each stack is one that nothing ever ran on, or that has gone back to the system: what the first use of a stack costs.
#include "workload.hpp"

#include <vector>
#include <weft/fiber.hpp>

void bench::run(bench::state& state) {
  std::vector<weft::coroutine<void()>> all;
  all.reserve(state.size());
  weft::stack_pool stacks;
  measure_cold_creation(
      state, [&] { return stacks.trim(); },
      [&](std::size_t count) {
        std::size_t ended = 0;
        for (std::size_t i = 0; i != count; ++i)
          all.emplace_back(weft::stack_options{.size = created_stack, .pool = &stacks}, [&](auto&) { ++ended; });
        for (auto& one : all) one.resume();
        all.clear();
        return ended;
      });
}

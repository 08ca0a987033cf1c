// With a pool of stacks of its own for each call: it maps, guards, uses and unmaps all that it needs.
#include "workload.hpp"

#include <vector>
#include <weft/coroutine.hpp>
#include <weft/fiber.hpp>
#include <weft/stack_pool.hpp>

void bench::run(bench::state& state) {
  std::vector<weft::coroutine<void()>> all;
  all.reserve(state.size());
  measure_creation(state, [&](std::size_t count) {
    weft::stack_pool stacks;
    std::size_t ended = 0;
    for (std::size_t i = 0; i != count; ++i)
      all.emplace_back(weft::stack_options{.size = created_stack, .pool = &stacks}, [&](auto&) { ++ended; });
    for (auto& one : all) one.resume();
    all.clear();
    return ended;
  });
}

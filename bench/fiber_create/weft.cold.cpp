// Each stack's memory has gone back to the system after the call before: what the first use of a stack costs, and giving its
// memory back. The pool keeps addresses and guards.
#include "workload.hpp"

#include <vector>
#include <weft/coroutine.hpp>
#include <weft/fiber.hpp>
#include <weft/stack_pool.hpp>

void bench::run(bench::state& state) {
  std::vector<weft::coroutine<void()>> all;
  all.reserve(state.size());
  weft::stack_pool stacks;
  measure_creation(state, [&](std::size_t count) {
    std::size_t ended = 0;
    for (std::size_t i = 0; i != count; ++i)
      all.emplace_back(weft::stack_options{.size = created_stack, .pool = &stacks}, [&](auto&) { ++ended; });
    for (auto& one : all) one.resume();
    all.clear();
    stacks.trim();
    return ended;
  });
}

// A fiber is a pointer to where it left off, on its own stack; the library has no call for the hint, which is as in the harness.
#include "workload.hpp"

#include <boost/context/fiber.hpp>
#include <boost/context/fixedsize_stack.hpp>

#include <cstring>
#include <vector>

void bench::run(bench::state& state) {
  namespace context = boost::context;
  static_assert(sizeof(context::fiber) == sizeof(void*));
  std::size_t turns = 0;
  std::vector<context::fiber> all;
  for (std::size_t i = 0; i != state.size(); ++i)
    all.emplace_back(std::allocator_arg, context::fixedsize_stack{switch_stack}, [&](context::fiber&& outside) {
      for (;;) {
        ++turns;
        outside = std::move(outside).resume();
      }
      return std::move(outside);
    });
  const auto left_off = [&](std::size_t i) {
    const void* at = nullptr;
    std::memcpy(&at, &all[i], sizeof(at));
    return at;
  };
  measure_prefetched_switches(
      state, turns, [&](std::size_t i) { __builtin_prefetch(left_off(i), 1); },
      [&](std::size_t i) { all[i] = std::move(all[i]).resume(); });
}

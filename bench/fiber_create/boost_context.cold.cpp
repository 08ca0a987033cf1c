// With guards, from the system and back to it, as it does where no pool is asked for.
#include "workload.hpp"

#include <boost/context/fiber.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>

#include <vector>

void bench::run(bench::state& state) {
  namespace context = boost::context;
  std::vector<context::fiber> all;
  all.reserve(state.size());
  measure_creation(state, [&](std::size_t count) {
    std::size_t ended = 0;
    for (std::size_t i = 0; i != count; ++i)
      all.emplace_back(std::allocator_arg, context::protected_fixedsize_stack{created_stack},
                       [&](context::fiber&& outside) {
                         ++ended;
                         return std::move(outside);
                       });
    for (auto& one : all) one = std::move(one).resume();
    all.clear();
    return ended;
  });
}

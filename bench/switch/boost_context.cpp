#include "workload.hpp"

#include <boost/context/fiber.hpp>
#include <boost/context/fixedsize_stack.hpp>

void bench::run(bench::state& state) {
  namespace context = boost::context;
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
  measure_switches(state, turns, [&] {
    for (auto& one : all) one = std::move(one).resume();
  });
}

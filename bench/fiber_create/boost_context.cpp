#include "workload.hpp"

#include <boost/context/fiber.hpp>
#include <boost/context/pooled_fixedsize_stack.hpp>

void bench::run(bench::state& state) {
  namespace context = boost::context;
  context::pooled_fixedsize_stack stacks{created_stack};
  std::vector<context::fiber> all;
  all.reserve(state.size());
  measure_creation(state, [&](std::size_t count) {
    std::size_t ended = 0;
    for (std::size_t i = 0; i != count; ++i)
      all.emplace_back(std::allocator_arg, context::pooled_fixedsize_stack{stacks}, [&](context::fiber&& outside) {
        ++ended;
        return std::move(outside);
      });
    for (auto& one : all) one = std::move(one).resume();
    all.clear();
    return ended;
  });
}

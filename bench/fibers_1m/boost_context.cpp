// Without guards: with them (protected_fixedsize_stack) the system allows 32,753 on its default settings.
#include "workload.hpp"

#include <boost/context/fiber.hpp>
#include <boost/context/fixedsize_stack.hpp>

#include <vector>

void bench::run(bench::state& state) {
  namespace context = boost::context;
  measure_at_once(
      state,
      [](std::size_t count) {
        std::vector<context::fiber> all;
        all.reserve(count);
        for (std::size_t i = 0; i != count; ++i) {
          all.emplace_back(std::allocator_arg, context::fixedsize_stack{stack_of_each},
                           [](context::fiber&& outside) { return std::move(outside).resume(); });
          all.back() = std::move(all.back()).resume();
        }
        return all;
      },
      [](auto& all) {
        for (auto& one : all) one = std::move(one).resume();
      });
}

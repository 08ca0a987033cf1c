#include "workload.hpp"

#include <vector>
#include <weft/fiber.hpp>

void bench::run(bench::state& state) {
  measure_at_once(
      state,
      [](std::size_t count) {
        std::vector<weft::coroutine<void()>> all;
        all.reserve(count);
        for (std::size_t i = 0; i != count; ++i) {
          all.emplace_back(weft::stack_options{.size = stack_of_each}, [](auto& yield) { yield(); });
          all.back().resume();
        }
        return all;
      },
      [](auto& all) {
        for (auto& one : all) one.resume();
      });
}

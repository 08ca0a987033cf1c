#include "workload.hpp"

#include <weft/coroutine.hpp>
#include <weft/fiber.hpp>

void bench::run(bench::state& state) {
  std::vector<weft::coroutine<void()>> all;
  all.reserve(state.size());
  measure_creation(state, [&](std::size_t count) {
    std::size_t ended = 0;
    for (std::size_t i = 0; i != count; ++i)
      all.emplace_back(weft::stack_options{.size = created_stack}, [&](auto&) { ++ended; });
    for (auto& one : all) one.resume();
    all.clear();
    return ended;
  });
}

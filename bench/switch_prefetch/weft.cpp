#include "workload.hpp"

#include <vector>
#include <weft/coroutine.hpp>
#include <weft/fiber.hpp>

void bench::run(bench::state& state) {
  std::size_t turns = 0;
  std::vector<weft::coroutine<void()>> all;
  for (std::size_t i = 0; i != state.size(); ++i)
    all.emplace_back(weft::stack_options{.size = switch_stack}, [&](auto& yield) {
      for (;; yield()) ++turns;
    });
  measure_prefetched_switches(
      state, turns, [&](std::size_t i) { all[i].prefetch(); }, [&](std::size_t i) { all[i].resume(); });
}

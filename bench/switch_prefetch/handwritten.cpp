// The limit: as in switch.
#include "workload.hpp"

#include "../harness/handwritten_switch.hpp"

#include <stdexcept>
#include <vector>

#if defined(__x86_64__)

namespace {

[[noreturn]] void counts(handwritten::context* mine) {
  for (;; handwritten::exchange(*mine)) ++*static_cast<std::size_t*>(mine->with);
}

}  // namespace

void bench::run(bench::state& state) {
  std::size_t turns = 0;
  handwritten::coloured_stacks stacks{state.size(), switch_stack};
  std::vector<handwritten::context*> all;
  for (std::size_t i = 0; i != state.size(); ++i) all.push_back(stacks.begin(i, counts, &turns));
  measure_prefetched_switches(
      state, turns, [&](std::size_t i) { __builtin_prefetch(all[i], 1); },
      [&](std::size_t i) { handwritten::exchange(*all[i]); });
}

#else

void bench::run(bench::state&) { throw std::runtime_error{"written for x86-64"}; }

#endif

// The limit of those that are scheduled: a ring of contexts that can run, and the switch of `handwritten`. Who yields is last
// in the ring, and goes over to the first, whose line was fetched when it was tenth. No other thread may take one, none ends,
// and nothing is counted.
#include "workload.hpp"

#include "../harness/handwritten_switch.hpp"

#include <stdexcept>

#if defined(__x86_64__)

namespace {

[[noreturn]] void counts(handwritten::context* mine) {
  auto& all = *static_cast<handwritten::run_queue*>(mine->with);
  for (;; all.yield(*mine)) ++all.turns;
}

}  // namespace

void bench::run(bench::state& state) {
  handwritten::run_queue all{state.size()};
  handwritten::coloured_stacks stacks{state.size() - 1, switch_stack};
  for (std::size_t i = 0; i + 1 != state.size(); ++i) all.push(*stacks.begin(i, counts, &all));
  handwritten::context own{};
  measure_scheduled(state, all.turns, [&] { all.yield(own); });
}

#else

void bench::run(bench::state&) { throw std::runtime_error{"written for x86-64"}; }

#endif

// switch_prefetch: as switch, with a hint by hand: whoever resumes them has the line of the one ten ahead fetched, where that one
// left off. The same hint for each library: a row of its own, since the plain one is what a program does that gives none.
#pragma once

#include "../switch/workload.hpp"

#include <algorithm>

namespace bench {

/// `fetch(i)` is the hint for the coroutine `i`; `resume(i)` resumes it, and it adds one to `turns`.
template <class Fetch, class Resume>
void measure_prefetched_switches(state& state, std::size_t& turns, Fetch fetch, Resume resume) {
  constexpr std::size_t ahead = 10;
  const std::size_t last = state.size() - 1;
  measure_switches(state, turns, [&] {
    for (std::size_t i = 0; i <= last; ++i) {
      fetch(std::min(i + ahead, last));
      resume(i);
    }
  });
}

}  // namespace bench

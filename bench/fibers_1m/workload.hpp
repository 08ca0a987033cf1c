// fibers_1m: so many stackful coroutines at once, on stacks of 64 KiB, each guarded where the library can. Each is made and
// runs up to its first yield; then all are there. What they take is the program's peak memory.
#pragma once

#include "../harness/harness.hpp"

#include <chrono>
#include <cstddef>

namespace bench {

inline volatile double has_divided = 1.0;  // see switch/workload.hpp
inline const bool both_have_divided = (has_divided = has_divided / 3, true);

inline constexpr std::size_t stack_of_each = std::size_t{64} << 10;

/// `make(count)` gives that many, each of which has run and yielded. `end` resumes each once more, so that it returns; outside
/// the clock.
template <class Make, class End>
void measure_at_once(state& state, Make make, End end) {
  using coroutines = decltype(make(state.size()));
  struct kept {
    End& end;
    coroutines all;
    ~kept() { end(all); }
  };
  state.measure(
      state.size(), state.size(), [&] { return kept{end, {}}; },
      [&](kept& now) {
        now.all = make(state.size());
        return now.all.size();
      });
}

}  // namespace bench

// switch: so many stackful coroutines on stacks of 64 KiB, each resumed in turn by a plain loop; each counts and yields.
// A pair is one resume and one yield. 2 show the switch itself; with 1000 and 30,000 the stacks' hot lines meet in the
// caches, which is what libcopp's own benchmark (30000 coroutines, 1000 switches, 64 KiB) is about.
//
// Scheduled (weft.fibers, handwritten.scheduled, boost_fiber, folly, go, libgo, photon): a ring of so many on one thread, of
// which the one that measures is one. Each counts and yields to whoever comes next. One item is a yield, and thus one switch
// from one to another.
#pragma once

#include "../harness/harness.hpp"

#include <cstddef>

namespace bench {

// The harness divides, which sets a status bit of mxcsr. A switch that loads all of mxcsr, as Boost.Context's, takes 360 ns
// where the two sides' status differs, and 18 where it does not (Sapphire Rapids). Here it does not: both have divided.
inline volatile double has_divided = 1.0;
inline const bool both_have_divided = (has_divided = has_divided / 3, true);

inline constexpr std::size_t switch_stack = std::size_t{64} << 10;

/// `resume_all()` resumes each coroutine once; each adds one to `turns`.
template <class ResumeAll>
void measure_switches(state& state, std::size_t& turns, ResumeAll resume_all) {
  resume_all();  // each touches its stack
  state.measure(state.size(), state.size(), [&] {
    const std::size_t before = turns;
    resume_all();
    return turns - before;
  });
}

/// Scheduled: `yield()` returns when each of the others had its turn, and added one to `turns`.
template <class Yield>
void measure_scheduled(state& state, std::size_t& turns, Yield yield) {
  measure_switches(state, turns, [&] {
    ++turns;
    yield();
  });
}

}  // namespace bench

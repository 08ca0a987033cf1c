// fiber_create: stackful coroutines on stacks of 64 KiB are made, run to their end without waiting, and are gone; so many
// at once. What a library keeps of stacks is warm after the first call. In a `cold` variant no memory is: each call takes all
// stacks from the system, and gives them back to it, inside the clock. A library that keeps the addresses and the guards of
// stacks whose memory it has given back may do so there; in a `fresh` variant it begins with nothing, and leaves nothing.
#pragma once

#include "../harness/harness.hpp"

#include <cstddef>

namespace bench {

inline volatile double has_divided = 1.0;  // see switch/workload.hpp
inline const bool both_have_divided = (has_divided = has_divided / 3, true);

inline constexpr std::size_t created_stack = std::size_t{64} << 10;

/// `create(count)` makes `count` coroutines, resumes each, and says how many have ended.
template <class Create>
void measure_creation(state& state, Create create) {
  state.measure(state.size(), state.size(), [&] { return create(state.size()); });
}

}  // namespace bench

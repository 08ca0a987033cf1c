// fiber_create: stackful coroutines on stacks of 64 KiB are made, run to their end without waiting, and are gone; so many
// at once. What a library keeps of stacks is warm after the first call; a `cold` variant is given none that is.
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

/// The same; before each call `cool()` gives the memory of all stacks back to the system, outside the clock.
template <class Cool, class Create>
void measure_cold_creation(state& state, Cool cool, Create create) {
  state.measure(state.size(), state.size(), cool, [&](const auto&) { return create(state.size()); });
}

}  // namespace bench

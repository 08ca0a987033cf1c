// cancel: a tree of tasks waits, ten children a node; then its root is told to stop, and the clock runs until all of them
// have ended. Each leaf that was stopped counts itself as it goes.
#pragma once

#include "../harness/harness.hpp"

#include <cstddef>

namespace bench {

inline constexpr std::size_t children_of_a_node = 10;

/// How deep a tree of ten children a node is that has `leaves` leaves.
constexpr int depth_of(std::size_t leaves) {
  int depth = 0;
  for (std::size_t reached = 1; reached < leaves; reached *= children_of_a_node) ++depth;
  return depth;
}

/// `Tree{leaves}` makes a tree that waits; stop() tells it, and returns how many leaves have ended.
template <class Tree>
void measure_cancel(state& state) {
  state.measure(state.size(), state.size(), [&] { return Tree{state.size()}; }, [](Tree& tree) { return tree.stop(); });
}

}  // namespace bench

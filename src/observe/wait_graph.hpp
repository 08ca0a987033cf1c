// Who waits for each other, of the roots that a walk has seen: as wait_circles.hpp finds it.
#pragma once

#include <cstddef>
#include <deque>
#include <vector>

#include "observe/root_walk.hpp"

namespace weft::detail {

/// The roots that wait for each other, by their places in the list; one circle for each component. Throws std::bad_alloc.
std::vector<std::vector<std::size_t>> circles_of(const std::deque<seen_root>& roots);

/// Of each, whether only what is blocked, too, could end its wait. Throws std::bad_alloc.
std::vector<bool> blocked_of(const std::deque<seen_root>& roots);

/// Whether all wait, some for what only a task would bring about, and nothing from outside is pending for any of them.
bool is_stuck(const std::deque<seen_root>& roots);

}  // namespace weft::detail

// Who waits for each other, so that none of them will ever go on.
//
// A wait is blocked if all that could end it is blocked, too. Those that could: of a mutex, a fork or a shared task, its
// holder; of a wait for children, the children, and where one of them may have the others stopped, any of them. Whatever else
// could end a wait (a clock, a callback, another thread, a stop at a deadline) is outside of this, and a wait that has such
// an end is not blocked. A stop that the program might still request is no end: nobody may be there to request it.
//
// All that wait for what has a known end are taken to be blocked; then those are taken out whose end is not blocked, until none
// is left that can be taken out. So what stays is the largest set of waits that only its own members can end. The circles in
// it are its strongly connected components.
//
// Source: R. Tarjan, "Depth-first search and linear graph algorithms", SIAM Journal on Computing 1 (1972).
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

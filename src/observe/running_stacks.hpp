// What tasks are in that run, for a snapshot and for who tells of an overdue scope.
#pragma once

#include <cstddef>
#include <span>

namespace weft::detail {

class root;
class root_walk;

/// Adds stacks to those of the walk that a thread is in: of one that computes the plain functions, too, for which it is sent a
/// signal; of one in a system call, and of the caller's, the coroutines alone. Only to those that a second walk finds, too: so
/// nobody has the stack of another one that was made at the same address meanwhile. Throws std::bad_alloc.
void add_running_stacks(root_walk& to, std::size_t most_frames);

/// A running_probe; see core/running_probe.hpp.
std::size_t calls_of_running(const root& of, std::span<const void*> into) noexcept;

}  // namespace weft::detail

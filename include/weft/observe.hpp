// Seeing inside: async stacks. A debugger and std::stacktrace show how a task was resumed; an async stack shows who
// awaits whom, down to the root, in release builds, too.
#pragma once

#include <vector>
#include <weft/detail/async_frame.hpp>

namespace weft {

namespace detail { class root; }

/// Gives the functions that wait for each other, innermost first: the task that runs on this thread, what awaits it, and
/// so on to its root; from a child of when_all on to whoever awaits the when_all. A fiber shows the plain functions that it
/// is in, and then who awaits it. Empty outside of tasks.
///
/// Usable  anywhere below a task's body, in a plain function, too.
/// Cost    two loads a frame, and the vector; a fiber is unwound, some microseconds. No names are looked up.
std::vector<async_frame> async_stack();

/// Gives the stack of a root that waits, from outside, on any thread. Empty if it does not wait in weft now: it runs, is
/// queued to run, or waits for an awaitable of another library. Whoever would end its wait spins until this is done.
///
/// Lifetime  whoever calls holds what keeps the root alive.
std::vector<async_frame> async_stack(detail::root& suspended);

}  // namespace weft

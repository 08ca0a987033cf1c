// Seeing inside: async stacks, and what waits are for. A debugger and std::stacktrace show how a task was resumed; an
// async stack shows who awaits whom, down to the root, in release builds, too.
#pragma once

#include <vector>
#include <weft/async_frame.hpp>
#include <weft/detail/base/config.hpp>
#include <weft/items.hpp>
#include <weft/wait_subject.hpp>

namespace weft {

namespace detail {
class root;
items<async_frame> stack_here();
items<async_frame> stack_of(root& suspended);
items<wait_subject> subjects_of(root& suspended);
}  // namespace detail

/// Gives the functions that wait for each other, innermost first: the task that runs on this thread, what awaits it, and
/// so on to its root; from a child of when_all on to whoever awaits the when_all. A fiber shows the plain functions that it
/// is in, and then who awaits it. Empty outside of tasks.
///
/// Usable  anywhere below a task's body, in a plain function, too.
/// Cost    two loads a frame, and the vector; a fiber is unwound, some microseconds. No names are looked up.
WEFT_CONTAINERS [[gnu::always_inline]] inline std::vector<async_frame> async_stack() { return detail::stack_here(); }

/// Gives the stack of a root that waits, from outside, on any thread. Empty if it does not wait in weft now: it runs, is
/// queued to run, or waits for an awaitable of another library. Whoever would end its wait spins until this is done.
///
/// Lifetime  whoever calls holds what keeps the root alive.
WEFT_CONTAINERS inline std::vector<async_frame> async_stack(detail::root& suspended) {
  return detail::stack_of(suspended);
}

/// Gives what a root that waits, waits for, and who has it: one thing; of a select, each of its cases, up to 16; nothing if
/// it does not wait in weft now. What a wait-for graph is made of: a holder is a root again, by its address.
///
/// Of a mutex the holder is who took it by lock(), also while another one uses its guard; of a shared_mutex who has it alone
/// or may upgrade; of a fork or shared_task, that. None is known of what many bring about: a semaphore, a channel, and the
/// children of a when_all or scope, whose roots name their parent.
///
/// Lifetime  whoever calls holds what keeps the root alive. A holder's address is not to be followed: it may be gone.
/// Cost      nothing while nobody asks: a wait has a pointer to its type, and a mutex has its holder in its own word.
WEFT_CONTAINERS inline std::vector<wait_subject> waits_on(detail::root& suspended) {
  return detail::subjects_of(suspended);
}

}  // namespace weft

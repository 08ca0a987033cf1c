// Seeing inside: async stacks, and what waits are for. A debugger and std::stacktrace show how a task was resumed; an
// async stack shows who awaits whom, down to the root, in release builds, too.
#pragma once

#include <vector>
#include <weft/async_frame.hpp>
#include <weft/detail/base/config.hpp>
#include <weft/items.hpp>
#include <weft/snapshot.hpp>
#include <weft/task_id.hpp>
#include <weft/wait_subject.hpp>

namespace weft {

namespace detail {
items<async_frame> stack_here();
items<async_frame> stack_of(task_id suspended);
items<wait_subject> subjects_of(task_id suspended);
}  // namespace detail

/// Gives the functions that wait for each other, innermost first: the task that runs on this thread, what awaits it, and
/// so on to its root; from a child of when_all on to whoever awaits the when_all. A fiber shows the plain functions that it
/// is in, and then who awaits it. Empty outside of tasks.
///
/// Usable  anywhere below a task's body, in a plain function, too.
/// Cost    two loads a frame, and the vector; a fiber is unwound, some microseconds. No names are looked up.
WEFT_CONTAINERS [[gnu::always_inline]] inline std::vector<async_frame> async_stack() { return detail::stack_here(); }

/// Gives the stack of a task that waits, from outside, on any thread. Empty if it does not wait in weft now: it runs, is queued
/// to run, waits for an awaitable of another library, or has ended. Of a stack deeper than 64 functions, the innermost ones.
///
/// Fails  throws std::bad_alloc.
/// Cost   that of take_snapshot() without stacks: the task is looked for among all that live. Who has many to look at takes one
///        snapshot.
WEFT_CONTAINERS inline std::vector<async_frame> async_stack(task_id suspended) { return detail::stack_of(suspended); }

/// Gives what a task that waits, waits for, and who has it: one thing; of a select, each of its cases, up to 16; nothing if it
/// does not wait in weft now, or has ended. A holder is given by its address, as task_id::address().
///
/// Of a mutex the holder is who took it by lock(), until its guard is moved; of a shared_mutex who has it alone or may
/// upgrade; of a fork or shared_task, that. None is known of what many bring about: a semaphore, a channel, and the children of
/// a when_all or scope, whose parents a snapshot shows.
///
/// Fails  as async_stack(). Cost: as async_stack().
WEFT_CONTAINERS inline std::vector<wait_subject> waits_on(task_id suspended) { return detail::subjects_of(suspended); }

}  // namespace weft

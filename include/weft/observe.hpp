// Introspection: async stacks, and what tasks wait for. A debugger and std::stacktrace show how a task was resumed; an async
// stack shows which function awaits which, up to the root, in release builds, too.
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

/// Gives the functions that await each other, innermost first: the task that runs on this thread, the one that awaits it, and
/// so on to its root; for a child of a when_all, on to whatever awaits the when_all. For a fiber, the plain functions that it
/// is in, and then what awaits it. Empty outside of tasks.
///
/// Usable  anywhere below a task's body, in plain functions, too. Throws std::bad_alloc.
/// Cost    two loads for each frame, and the vector; a fiber is unwound, which takes some microseconds. No names are looked up.
WEFT_CONTAINERS [[gnu::always_inline]] inline std::vector<async_frame> async_stack() { return detail::stack_here(); }

/// Gives the stack of another task that waits, innermost function first. Empty if it does not wait in weft now: it runs, is
/// queued to run, waits for an awaitable of another library, or has ended. Of a stack deeper than 64 functions, the innermost
/// ones.
///
/// Fails    throws std::bad_alloc.
/// Threads  any, also outside of tasks.
/// Cost     that of take_snapshot() without stacks, since it searches all tasks. To look at many tasks, take one snapshot.
WEFT_CONTAINERS inline std::vector<async_frame> async_stack(task_id suspended) { return detail::stack_of(suspended); }

/// Gives what a waiting task waits for, and which task holds that: one entry; for a select, one for each case, up to 16; none
/// if the task does not wait in weft now, or has ended. A holder is given by its address, as task_id::address().
///
/// The holder of a mutex is the task that took it by lock(), until its guard is moved; of a shared_mutex, the one that has it
/// exclusively or may upgrade; of a fork or shared_task, that itself. There is none for what many can bring about: a semaphore,
/// a channel, the children of a when_all or scope. Of the last two, a snapshot shows the parents.
///
/// Fails  as async_stack(). Threads: any. Cost: as async_stack().
WEFT_CONTAINERS inline std::vector<wait_subject> waits_on(task_id suspended) { return detail::subjects_of(suspended); }

}  // namespace weft

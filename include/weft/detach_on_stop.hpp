// detach_on_stop: stops waiting for an operation that can't be stopped.
//
// The operation is a root of its own, which the awaiting task starts and waits for, as for a callback. A stop ends that wait,
// and not the operation: it goes on by itself, and frees its memory at its end. So it must own what it uses.
#pragma once

#include <coroutine>
#include <type_traits>
#include <utility>
#include <weft/detail/task/detach_on_stop.hpp>
#include <weft/future.hpp>
#include <weft/task.hpp>

namespace weft {

/// Awaits an operation that can't be stopped, or takes long to stop. A stop ends the await at once; the operation goes on,
/// detached, to its own end. So it must own all that it uses: pass its arguments by value.
///
///     co_await w::detach_on_stop(upload(std::move(file)));
///
/// Suspends  until the operation has ended, or the stop.
/// Cancel    the task ends stopped; no stop reaches the operation. A task that was stopped before does not begin it.
/// Fails     throws what the operation throws, or std::bad_alloc. A failure after the stop goes to the lost_error_handler, see
///           error.hpp.
/// Threads   the operation runs on the executor of the awaiting task. Below a sync_wait, which may return before the operation
///           has ended, it has no executor: it begins on that thread, and resumes wherever what it waits for completes.
/// Lifetime  the executor and the clock of the environment outlive the operation, which may be longer than the await: keep a
///           pool, a strand or a manual_executor until the operation has ended, too. The same holds for a scope's `.memory` if
///           the operation was made there, since its frame comes from that.
/// Cost      two allocations beside the frame.
template <awaitable Awaitable>
auto detach_on_stop(Awaitable&& operation) {
  static_assert(!std::is_lvalue_reference_v<Awaitable>,
                "detach_on_stop: the operation may outlive who awaits it, so it is given away: pass an rvalue");
  return detail::detaching<await_result<Awaitable>>{detail::as_task(std::forward<Awaitable>(operation))};
}

/// The same for a function that returns the operation, or does all of it before it returns. The function and its arguments are
/// moved into the operation's frame.
template <class F, class... Args>
  requires(!awaitable<F>) && std::is_invocable_v<std::decay_t<F>, std::decay_t<Args>...>
auto detach_on_stop(F&& f, Args&&... args) {
  WEFT_EXPECTS_NO_DOOMED_TEMPORARY(F);
  return detach_on_stop(
      detail::call_owned<std::decay_t<F>, std::decay_t<Args>...>(std::forward<F>(f), std::forward<Args>(args)...));
}

}  // namespace weft

// detach_on_stop: for an operation that can't be stopped.
//
// The operation is a root of its own, which the awaiting task starts and waits for, as for a callback. A stop ends that
// wait, not the operation: it goes on without anybody, and frees itself at its end. So it must own what it uses.
#pragma once

#include <coroutine>
#include <type_traits>
#include <utility>
#include <weft/detail/task/detach_on_stop.hpp>
#include <weft/future.hpp>
#include <weft/task.hpp>

namespace weft {

/// Awaits an operation that can't be stopped, or takes its time about it. A stop ends the await at once; the operation
/// goes on, detached, to its own end. So it owns all that it uses: it takes its arguments by value.
///
///     co_await w::detach_on_stop(upload(std::move(file)));
///
/// Suspends  until the operation has ended, or the stop.
/// Cancel    ends stopped; no stop reaches the operation. A task that was stopped before does not begin it.
/// Fails     throws what the operation throws, or std::bad_alloc. A failure after the stop is a lost error, see error.hpp.
/// Threads   the operation runs on the executor of the task that awaits it. Below a sync_wait, which may return before it
///           ends, it has none: it begins there, and goes on where what it waits for completes.
/// Lifetime  the executor and the clock of the environment outlive the operation, not the await alone: keep a pool, a
///           strand or a manual_executor until the operation has ended, too. So does a scope's `.memory`, if the operation
///           was made there, since its frame is of that.
/// Cost      two allocations beside the frame.
template <awaitable Awaitable>
auto detach_on_stop(Awaitable&& operation) {
  static_assert(!std::is_lvalue_reference_v<Awaitable>,
                "detach_on_stop: the operation may outlive who awaits it, so it is given away: pass an rvalue");
  return detail::detaching<await_result<Awaitable>>{detail::as_task(std::forward<Awaitable>(operation))};
}

/// The same for a function that returns the operation, or does it at once. It and its arguments are moved into the
/// operation's frame.
template <class F, class... Args>
  requires(!awaitable<F>) && std::is_invocable_v<std::decay_t<F>, std::decay_t<Args>...>
auto detach_on_stop(F&& f, Args&&... args) {
  WEFT_EXPECTS_NO_DOOMED_TEMPORARY(F);
  return detach_on_stop(
      detail::call_owned<std::decay_t<F>, std::decay_t<Args>...>(std::forward<F>(f), std::forward<Args>(args)...));
}

}  // namespace weft

// Asynchronous cleanup: a destructor can't co_await, so a task registers what is to be awaited when it has ended.
//
//     w::task<> serve(connection c) {
//       co_await w::on_scope_exit(log_out, c.session());
//       ...  // however this ends, log_out() is awaited behind it
//     }
#pragma once

#include <utility>
#include <weft/detail/base/invoke.hpp>
#include <weft/detail/task/exit_registration.hpp>
#include <weft/task.hpp>

namespace weft {

/// `co_await on_scope_exit(close(std::move(file)));` in a task registers a cleanup, `close`. It runs when that task has ended
/// in whatever way (with a value, an exception, or stopped), and before the task's awaiter goes on. Several run in reverse
/// order.
///
/// The task's own variables are destroyed by then, so the cleanup owns what it uses, or that lives further out. In an
/// async_generator it does not compile: one may be dropped half-way, by a destructor, which can't wait.
///
/// Suspends  the registration does not.
/// Cancel    the cleanup is shielded: it can wait even where the task was told to stop.
/// Fails     the registration throws std::bad_alloc. A cleanup that throws ends the program with a sentence.
/// Cost      one block of frame memory, and the cleanup's frame.
template <awaitable Awaitable>
detail::exit_registration on_scope_exit(Awaitable&& cleanup) {
  static_assert(std::is_void_v<await_result<Awaitable>>, "a cleanup gives nothing, for nobody could take it");
  return detail::exit_registration{detail::as_task(std::forward<Awaitable>(cleanup))};
}

/// The same for a function that returns the cleanup. It is called when the task has ended. Until then, the function (which
/// captures nothing that it does not own) and its arguments are kept in the cleanup's frame.
///
///     co_await on_scope_exit([](session s) -> task<> { co_await s.log_out(); }, co_await log_in());
template <class F, class... Args>
  requires(!awaitable<F>) && std::is_invocable_v<std::decay_t<F>, std::decay_t<Args>...>
detail::exit_registration on_scope_exit(F&& f, Args&&... args) {
  WEFT_EXPECTS_NO_DOOMED_TEMPORARY(F);
  return detail::exit_registration{detail::call_at_exit<detail::callable<F>, std::decay_t<Args>...>(
      std::forward<F>(f), std::forward<Args>(args)...)};
}

}  // namespace weft

// Cleanup that waits: a destructor can't co_await, so a task names what is to run when it has ended.
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

/// `co_await on_scope_exit(close(std::move(file)));` in a task has `close` run when that task has ended, however it
/// ends: with a value, an exception, or stopped; before whoever awaits it goes on. Of several, the last one runs first.
///
/// The task's own variables are gone by then: what the cleanup needs, it owns, or it lives further out. In an
/// async_generator it does not compile: whoever drops one half-way does so in a destructor, which can't wait.
///
/// Suspends  not where it is registered.
/// Cancel    the cleanup is shielded: it can wait even where the task was told to stop.
/// Fails     a cleanup that throws ends the program with a sentence. std::bad_alloc where it is registered.
/// Cost      one block of frame memory, and the cleanup's frame.
template <awaitable Awaitable>
detail::exit_registration on_scope_exit(Awaitable&& cleanup) {
  static_assert(std::is_void_v<await_result<Awaitable>>, "a cleanup gives nothing, for nobody could take it");
  return detail::exit_registration{detail::as_task(std::forward<Awaitable>(cleanup))};
}

/// The same for a function that returns the cleanup. It is called when the task has ended; it and its arguments are
/// moved into the cleanup's frame until then, as a lambda's captures must be.
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

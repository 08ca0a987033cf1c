// Failures without a throw: fail_with() ends a task with an error, and nothrow() passes the error of a callee on.
//
// A failure is kept in the promise of the task that has failed, and is thrown where the task is awaited. So a task can also
// fail at a suspension point: the failure is put into its promise, and control goes to the awaiter. The failed task's frame
// stays suspended there; the awaiter destroys it, and with it the task's variables, before any other code runs.
//
// This works where a coroutine awaits the task directly, by as_result() or by nothrow(). All other awaiters keep the frame for
// longer (a join until all children have ended, a fork while it has a handle), or need the variables to be gone already (a
// cleanup by on_scope_exit, the return from a hop). For these the failure is thrown in this one task, so that its body ends in
// the usual way.
//
// Rejected: `co_return` of a failure: a promise that has return_void() can't have return_value(), so a task<> could not.
#pragma once

#include <concepts>
#include <exception>
#include <system_error>
#include <utility>
#include <weft/detail/task/nothrow.hpp>
#include <weft/task.hpp>

namespace weft {

/// Ends the awaiting task with an error, without a throw in that task. Whoever awaits the task gets the error as usual.
///
///     w::task<int> port_of(const config& from) {
///       if (!from.has("port")) co_await w::fail_with(missing{"port"});
///       co_return from.number("port");
///     }
///
/// Takes an exception, a std::exception_ptr, or a std::error_code, which becomes a std::system_error. Put no `try` around it in
/// the task itself, since most often it would not see the error. The task's variables are destroyed before the awaiter goes on.
///
/// Suspends  for good: no code behind it runs.
/// Fails     always, with the error. The error is thrown here, in the task itself, where the task is the outermost of its root
///           (a fork, a child of when_all or the like), is awaited by a fiber, has registered a cleanup, or has hopped.
/// Cost      a seventh of the instructions of a throw, most of them for the exception's memory and for the note of where it
///           failed.
template <class Error>
  requires std::derived_from<Error, std::exception>
detail::failing fail_with(Error error) {
  return detail::failing{std::make_exception_ptr(std::move(error)), true};
}
inline detail::failing fail_with(std::error_code code) { return fail_with(std::system_error{code}); }
inline detail::failing fail_with(std::exception_ptr failure) noexcept { return detail::failing{std::move(failure)}; }

/// Awaits, and if that fails, ends the awaiting task with the same error, without a throw in that task. So an error that nobody
/// on the way handles passes through any number of tasks without a throw.
///
///     auto text = co_await w::nothrow(read(file));  // if it fails, so does this task
///
/// Suspends  as the awaitable does.
/// Cancel    as the awaitable.
/// Fails     with the error of the awaitable. Put no `try` around it in the task itself, since most often it would not see the
///           error. The task's variables are destroyed before the awaiter goes on. The error is thrown here where fail_with()
///           would throw it.
/// Cost      some 60 instructions more than an await, and as many again where it fails; a throw takes 28,000 for each task that
///           it passes. An awaitable that is no task throws once, where it is awaited.
template <detail::awaitable_argument Awaitable>
auto nothrow(WEFT_ELIDABLE_ARGUMENT Awaitable&& awaitable) {
  return detail::nothrow_awaiter<await_result<Awaitable>>{detail::as_task(std::forward<Awaitable>(awaitable))};
}
template <int = 0>
void nothrow(detail::refused<>);
template <int = 0>
detail::void_is_no_awaitable nothrow(...);

}  // namespace weft

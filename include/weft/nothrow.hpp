// Failures that are not thrown: fail_with ends a task with one, nothrow hands that of a callee on.
//
// A failure stands in the promise of the task that has failed, and is thrown where the task is awaited. So a task can also
// fail where it waits: the failure is put into its promise, and control goes to whoever awaits it. Its frame stays
// suspended there; who awaits it destroys it, and with it the task's variables, before anything else goes on.
//
// That is so where a coroutine awaits the task as it is, by as_result or by nothrow. All others keep the frame for a while,
// a join until all children have ended, a fork while it has a handle, or have to find the variables gone, as a cleanup and
// the way home from a hop. There the failure is thrown, in the one task, so that its body ends as ever.
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

/// Ends the task that awaits it with an error, which is not thrown in this task: whoever awaits the task gets it as ever.
///
///     w::task<int> port_of(const config& from) {
///       if (!from.has("port")) co_await w::fail_with(missing{"port"});
///       co_return from.number("port");
///     }
///
/// Takes an exception, a std::exception_ptr, or a std::error_code, which becomes a std::system_error. Put no handler around
/// it in the task itself; the task's variables go before anybody goes on.
///
/// Suspends  for good: nothing behind it runs.
/// Fails     with the error, always. It is thrown from here where the task is the outermost of its root (a fork, a child of
///           when_all or the like), is awaited by a fiber, has registered a cleanup or has hopped.
/// Cost      no throw: a seventh of its instructions, most of them for the exception's memory and the note of where it was.
template <class Error>
  requires std::derived_from<Error, std::exception>
detail::failing fail_with(Error error) {
  return detail::failing{std::make_exception_ptr(std::move(error)), true};
}
inline detail::failing fail_with(std::error_code code) { return fail_with(std::system_error{code}); }
inline detail::failing fail_with(std::exception_ptr failure) noexcept { return detail::failing{std::move(failure)}; }

/// Awaits, and if that fails, ends the task that awaits it with the same error, which is not thrown in this task: so an
/// error that nobody on the way handles passes any number of tasks without a throw.
///
///     auto text = co_await w::nothrow(read(file));  // a failure is this task's
///
/// Suspends  as the awaitable does.
/// Cancel    as the awaitable.
/// Fails     with what the awaitable fails with. Put no handler around it in the task itself; the task's variables go
///           before anybody goes on. It is thrown from here where fail_with would.
/// Cost      some 60 instructions more than an await, and as many where it fails; a throw takes 28,000 for each task that it
///           passes. An awaitable that is no task throws once, where it is awaited.
template <detail::awaitable_argument Awaitable>
auto nothrow(WEFT_ELIDABLE_ARGUMENT Awaitable&& awaitable) {
  return detail::nothrow_awaiter<await_result<Awaitable>>{detail::as_task(std::forward<Awaitable>(awaitable))};
}
template <int = 0>
void nothrow(detail::refused<>);

}  // namespace weft

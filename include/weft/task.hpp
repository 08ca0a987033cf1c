// Lazy tasks: the call that can wait.
//
//     w::task<int> answer() { co_return 42; }
//     w::task<> ask() { std::printf("%d", co_await answer()); }
//     int main() { w::sync_wait(ask()); }
//
// A task does nothing until it is awaited, then runs in the root of whoever awaits it: `co_await f()` costs about what
// a call of a function costs that the compiler does not inline. Where clang can see the callee, its frame is placed in
// the caller's; else it comes from the worker's frame memory. A task resumes on its own executor, whoever completed
// what it waited for.
//
// A task ends in one of three ways: with a value, with an exception (thrown at the await), or stopped. Stopped is no
// exception: the frames that wait for it are destroyed, innermost first, up to as_result, sync_wait or another
// boundary. Destructors run; `catch` does not.
//
// Invariants. A task's frame, and with it its arguments, is destroyed at the end of the expression that awaits it, also
// where the task has a name; one that nobody awaits goes with the task. A frame that lies in its caller's frame and has
// nothing to destroy is not destroyed at all: the await knows, at compile time, and saves a call (17.0 -> 12.4 ns a level
// in the prototype).
//
// Rejected: results in the awaiter, which would save 16 bytes of the frame; but a fork that has finished before anybody
// awaits it keeps its result in its frame.
#pragma once

#include <coroutine>
#include <type_traits>
#include <utility>
#include <weft/detail/core/root.hpp>
#include <weft/detail/task/as_result.hpp>
#include <weft/detail/task/as_task.hpp>
#include <weft/detail/task/refused.hpp>
#include <weft/detail/task/started_root.hpp>
#include <weft/detail/task/task_awaiter.hpp>
#include <weft/error.hpp>
#include <weft/executor.hpp>
#include <weft/stop.hpp>

namespace weft {

/// A coroutine that runs when it is awaited.
///
///     task<int> answer() { co_return 42; }
///     task<> ask() { std::print("{}", co_await answer()); }
///
/// T is void, a reference, or any type that can be moved. Move-only; awaited once, as an rvalue: `co_await f()` or
/// `co_await std::move(t)`. A task that is dropped unawaited never ran, which compilers warn about.
///
/// Cancel    a stop of its root ends it at its next await that waits.
/// Fails     what its body throws is thrown at the await. std::bad_alloc where it is called, if there is no frame.
/// Lifetime  its locals go when its body ends; its arguments, as those of any function, at the end of the expression that
///           awaits it, also where the task has a name. So a reference or a view that it gives may refer to an argument
///           until then, and not later.
/// Memory    its caller's frame, the worker's frame memory, or after a std::allocator_arg the resource that follows.
/// Cost      some 8 ns to await, and a return; no allocation where clang elides, else one cached block.
template <class T = void>
class [[nodiscard("a task does nothing until it is awaited")]] WEFT_ELIDABLE WEFT_COROUTINE_TYPE task
    : detail::task_awaiter<T> {
  static_assert(!std::is_rvalue_reference_v<T>, "a task can't return an rvalue reference: return a value");

 public:
  using promise_type = detail::task_promise<T>;
  using value_type = T;

  task() noexcept = default;  ///< empty: not to be awaited
  task(task&&) noexcept = default;
  task& operator=(task&&) noexcept = default;
  WEFT_PER_AWAIT ~task() = default;

  /// Whether there is a coroutine to await.
  explicit operator bool() const noexcept { return !this->is_empty(); }

 private:
  friend promise_type;
  friend detail::task_access;

  explicit task(std::coroutine_handle<promise_type> frame) noexcept : detail::task_awaiter<T>{frame} {}
};

/// Whatever `co_await` takes in a task.
template <class Awaitable>
concept awaitable = detail::is_task<std::remove_cvref_t<Awaitable>> || detail::awaitable<Awaitable>;

/// What a function that awaits it gives on: sync_wait, as_result, when_all and all others. Of an lvalue, what `co_await` of
/// it gives; of an rvalue, which ends with that function, nothing that refers to it: of a shared_task<T> a T.
template <awaitable Awaitable>
using await_result = typename detail::task_of<Awaitable>::value_type;

/// Runs an awaitable on the calling thread, and blocks it until that has ended. While the task waits, the thread sleeps
/// on a futex; the task resumes on this thread.
///
/// Cancel    when `stop` is stopped, so is the task.
/// Fails     throws what the task threw, or `stopped`, which says why, if it ended stopped. Called inside a task, where it
///           would block a worker, it ends the program with a sentence: co_await there.
template <detail::awaitable_argument Awaitable>
await_result<Awaitable> sync_wait(Awaitable&& awaitable, stop_token stop = {}) {
  using value_type = await_result<Awaitable>;
  detail::blocking_root root{stop};
  detail::frame_guard<value_type> ended{
      detail::task_access::release(detail::as_task(std::forward<Awaitable>(awaitable)))};
  root.adopt(ended.frame, ended.frame.promise());
  if (!root.run()) {
    ended.frame = nullptr;  // unwound
    root.throw_stopped();
  }
  return ended.frame.promise().take();
}
template <int = 0>
void sync_wait(detail::refused<>, stop_token = {});

/// Awaits, and gives what came of it as a `result<T>`: the value, the exception or the stop. Neither is thrown. Where the
/// whole root was told to stop, its next await stops again: a stop can be seen here, not swallowed.
///
/// Cost  that of an await.
///
///     result<int> r = co_await as_result(might_fail());
///     if (!r) log(r.error());
template <detail::awaitable_argument Awaitable>
auto as_result(WEFT_ELIDABLE_ARGUMENT Awaitable&& awaitable) {
  return detail::as_result_awaiter<await_result<Awaitable>>{detail::as_task(std::forward<Awaitable>(awaitable))};
}
template <int = 0>
void as_result(detail::refused<>);

/// Starts a task, or whatever else can be awaited, from code that is no coroutine; `callback(result<T>)` is called once,
/// where it ends. The first form runs it here and at once, up to its first wait, and resumes it wherever what it waits for
/// completes; the second has `ex` run it from the beginning. What the task refers to must live until the callback; so must
/// an awaitable that is given as an lvalue.
///
/// Cancel    when `stop` is stopped, so is the task; the callback gets a stopped result.
/// Fails     std::bad_alloc, before anything has started. A value whose move throws is an exception in the result. The
///           callback must not throw: that ends the program, with a sentence.
/// Cost      one allocation; of what is no task, a frame more.
template <detail::awaitable_argument Awaitable, class Callback>
  requires std::is_invocable_v<Callback, result<await_result<Awaitable>>>
void start(Awaitable&& work, Callback callback, stop_token stop = {}) {
  detail::started_root<await_result<Awaitable>, Callback>::start(
      nullptr, detail::as_task(std::forward<Awaitable>(work)), std::move(callback), stop);
}
template <detail::awaitable_argument Awaitable, class Callback>
  requires std::is_invocable_v<Callback, result<await_result<Awaitable>>>
void start(executor& ex, Awaitable&& work, Callback callback, stop_token stop = {}) {
  detail::started_root<await_result<Awaitable>, Callback>::start(&ex, detail::as_task(std::forward<Awaitable>(work)),
                                                                 std::move(callback), stop);
}
template <int = 0>
void start(detail::refused<>, detail::whatever, stop_token = {});
template <int = 0>
void start(detail::given<executor&>, detail::refused<>, detail::whatever, stop_token = {});

// ---- implementation -----------------------------------------------------------------------------------------------------

namespace detail {

template <class T>
inline task<T> task_promise<T>::get_return_object() noexcept {
  return task_access::make<T>(std::coroutine_handle<task_promise>::from_promise(*this));
}
template <class T>
inline task<T&> task_promise<T&>::get_return_object() noexcept {
  return task_access::make<T&>(std::coroutine_handle<task_promise>::from_promise(*this));
}
inline task<void> task_promise<void>::get_return_object() noexcept {
  return task_access::make<void>(std::coroutine_handle<task_promise>::from_promise(*this));
}

}  // namespace detail

template <class T>
detail::in_place_awaiter<T> awaiter_in_root(task<T>&& callee) noexcept {
  return static_cast<detail::in_place_awaiter<T>>(detail::task_access::awaiter(callee));
}
template <class T>
detail::refused_awaiter awaiter_in_root(task<T>&) noexcept {
  static_assert(!sizeof(T*), "a task is awaited once, as an rvalue: co_await std::move(t)");
  return {};
}

}  // namespace weft

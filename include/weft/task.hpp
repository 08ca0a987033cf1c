// Lazy tasks: coroutines that are called like functions, and can wait.
//
//     w::task<int> answer() { co_return 42; }
//     w::task<> ask() { std::printf("%d", co_await answer()); }
//     int main() { w::sync_wait(ask()); }
//
// A task does nothing until it is awaited; then it runs in the root of the awaiting task. `co_await f()` costs about as much as
// a call that the compiler does not inline. Where clang can see the callee, it places the callee's frame in that of the caller;
// otherwise the frame comes from the worker's frame memory. A task resumes on its own executor, no matter which thread
// completes what it waited for.
//
// A task ends in one of three ways: with a value, with an exception (thrown at the await), or stopped. A stop is no exception:
// the frames of the tasks that wait for the stopped one are destroyed, innermost first, up to as_result(), sync_wait() or
// another boundary. Destructors run; `catch` does not.
//
// Invariants. A task's frame, and with it its arguments, is destroyed at the end of the expression that awaits it, also where
// the task has a name; that of a task that nobody awaits is destroyed with the task. A frame that lies in its caller's frame
// and has nothing to destroy is not destroyed at all: the await knows this at compile time, and saves a call (17.0 -> 12.4 ns a
// level in the prototype).
//
// Rejected: to keep the result in the awaiter, which would save 16 bytes of the frame. But a fork that has finished before
// anybody awaits it keeps its result in its frame.
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
/// `co_await std::move(t)`. A task that is never awaited never runs: compilers warn where it is dropped, and where a variable
/// keeps it that nothing mentions again.
///
/// Suspends  until it has ended.
/// Cancel    a stop of its root ends it at its next await that has to wait.
/// Fails     what its body throws is thrown at the await. The call throws std::bad_alloc if there is no memory for the frame.
/// Lifetime  its locals are destroyed when its body ends; its arguments, as those of any function, at the end of the expression
///           that awaits it, also where the task has a name. So a reference or a view that it gives may refer to an argument
///           until then, and not later.
/// Memory    its frame is in its caller's frame, in the worker's frame memory, or in the resource that follows a
///           std::allocator_arg.
/// Cost      some 8 ns for the await and the return; no allocation where clang elides it, else one cached block.
template <class T = void>
class WEFT_TO_BE_AWAITED("a task does nothing until it is awaited") WEFT_ELIDABLE WEFT_COROUTINE_TYPE task
    : detail::task_awaiter<T> {
  static_assert(!std::is_rvalue_reference_v<T>, "a task can't return an rvalue reference: return a value");

 public:
  using promise_type = detail::task_promise<T>;
  using value_type = T;

  task() noexcept = default;  ///< empty; must not be awaited
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

/// What can be awaited in a task by `co_await`.
template <class Awaitable>
concept awaitable = detail::is_task<std::remove_cvref_t<Awaitable>> || detail::awaitable<Awaitable>;

/// The type of result with which sync_wait, as_result, when_all and the like await an Awaitable. For an lvalue, it is what
/// `co_await` gives. For an rvalue, which is destroyed before that function returns, nothing that refers to it: for a
/// shared_task<T> a T.
template <awaitable Awaitable>
using await_result = typename detail::task_of<Awaitable>::value_type;

/// Runs an awaitable on the calling thread, and blocks the thread until it has ended. While the task waits, the thread sleeps
/// on a futex; the task resumes on this thread.
///
/// Cancel    when `stop` is stopped, so is the task.
/// Fails     throws what the task threw, or, if it ended stopped, `stopped`, whose causes() say why. In a task, where it would
///           block a worker, it ends the program with a sentence: use co_await there.
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
template <int = 0>
detail::void_is_no_awaitable sync_wait(...);

/// Awaits, and gives the outcome as a `result<T>`: the value, the exception, or the stop. Neither of the latter is thrown. A
/// task can see a stop of its own root here, but not swallow it: its next await stops again.
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
template <int = 0>
detail::void_is_no_awaitable as_result(...);

/// Starts a task, or whatever else can be awaited, from code that is no coroutine. `callback(result<T>)` is called once, on the
/// thread where the task ends. Without `ex`, the task starts within this call, runs up to its first wait, and resumes wherever
/// what it waits for completes; with it, `ex` runs the task from the beginning. What the task refers to, and an awaitable that
/// is given as an lvalue, must live until the callback.
///
/// Cancel    when `stop` is stopped, so is the task; the callback gets a stopped result.
/// Fails     throws std::bad_alloc, before anything has started. If moving the value throws, the result holds that exception.
///           The callback must not throw: that ends the program, with a sentence.
/// Threads   any. Does not block.
/// Cost      one allocation; for an awaitable that is no task, a coroutine frame besides.
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

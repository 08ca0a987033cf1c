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
#include <weft/task.hpp>

namespace weft {

namespace detail {

/// Where a task returns to that hands its failure on.
struct hands_on : boundary {
  hands_on(void (*callee_returned)(hands_on&), void (*stopped)(boundary&) noexcept) noexcept
      : boundary{returned, stopped, nullptr, nullptr}, callee_returned_{callee_returned} {}
  static void returned(frame* self);

 private:
  void (*callee_returned_)(hands_on&);
};

/// Whether a task that returns there has its frame destroyed before anything else goes on.
bool destroys_at_once(std::coroutine_handle<> continuation) noexcept;

/// Ends the task that has suspended in `self` with `failure`. Gives who goes on: `self`, if that has to throw it.
template <class Promise>
std::coroutine_handle<> fail_where_it_waits(std::coroutine_handle<Promise> self, std::exception_ptr& failure) noexcept {
  Promise& promise = self.promise();
  if (!destroys_at_once(promise.continuation)) return self;
  promise.set_exception(std::move(failure));
  promise.owner->top = promise.continuation;
  return promise.continuation;
}

class [[nodiscard("a task fails when it awaits this: co_await fail_with(error)")]] failing : public knows_roots {
 public:
  explicit failing(std::exception_ptr failure, bool is_new = false) noexcept
      : failure_{std::move(failure)}, is_new_{is_new} {
    WEFT_EXPECTS(failure_ != nullptr, "fail_with was given a null std::exception_ptr: there is no failure to end with");
  }

  bool await_ready() const noexcept { return false; }
  template <class Promise>
  std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> self) noexcept {
    static_assert(of_a_task<Promise>, "fail_with belongs in a task: elsewhere, throw");
    if (is_new_) note_failure(self.promise(), failure_);
    return transfer(*self.promise().owner, fail_where_it_waits(self, failure_));
  }
  [[noreturn]] void await_resume() { rethrow(std::move(failure_)); }

 private:
  std::exception_ptr failure_;
  bool is_new_;
};

/// Awaits a task, and has the caller fail as that did.
template <class T>
class [[nodiscard("nothrow does nothing until it is awaited")]] WEFT_ELIDABLE nothrow_awaiter : public knows_roots,
                                                                                                hands_on {
 public:
  explicit nothrow_awaiter(task<T>&& callee) noexcept
      : hands_on{callee_returned, stopped_here}, callee_{task_access::release(std::move(callee))} {}
  nothrow_awaiter(nothrow_awaiter&& other) noexcept  // before it is awaited
      : hands_on{callee_returned, stopped_here}, callee_{std::exchange(other.callee_, nullptr)} {}
  ~nothrow_awaiter() {
    if (callee_) destroy_frame(std::exchange(callee_, nullptr));
  }

  bool await_ready() const noexcept { return false; }
  template <class Promise>
  WEFT_PER_AWAIT std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> caller) noexcept {
    static_assert(of_a_task<Promise>, "nothrow belongs in a task: elsewhere, a failure is thrown");
    root& self = *caller.promise().owner;
    continuation = caller;
    owner = &self;
    fail_caller_ = [](std::coroutine_handle<> waits, std::exception_ptr& failure) noexcept {
      return fail_where_it_waits(std::coroutine_handle<Promise>::from_address(waits.address()), failure);
    };
    enter_root(self, callee_, handle());
    return transfer(self, callee_);
  }
  T await_resume() {
    const frame_guard<T> ended{std::exchange(callee_, nullptr)};
    if (failure_) rethrow(std::move(failure_));
    return ended.frame.promise().take_value();
  }

 private:
  static void callee_returned(hands_on& self) {
    auto& mine = static_cast<nothrow_awaiter&>(self);
    const std::coroutine_handle<> caller = mine.continuation;
    mine.owner->top = caller;
    task_promise<T>& promise = mine.callee_.promise();
    if (!promise.is_exception()) return run_next(caller);
    mine.failure_ = std::move(promise.exception());
    std::exchange(mine.callee_, nullptr).destroy();
    run_next(mine.fail_caller_(caller, mine.failure_));
  }
  static void stopped_here(boundary& self) noexcept {
    auto& mine = static_cast<nothrow_awaiter&>(self);
    unwind_on(*mine.owner, mine.callee_, mine.continuation);  // mine is gone after this line
  }

  std::coroutine_handle<task_promise<T>> callee_;
  std::coroutine_handle<> (*fail_caller_)(std::coroutine_handle<>, std::exception_ptr&) noexcept;
  std::exception_ptr failure_;  // of the callee, where the caller has to throw it
};

}  // namespace detail

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
template <awaitable Awaitable>
auto nothrow(WEFT_ELIDABLE_ARGUMENT Awaitable&& awaitable) {
  return detail::nothrow_awaiter<await_result<Awaitable>>{detail::as_task(std::forward<Awaitable>(awaitable))};
}

}  // namespace weft

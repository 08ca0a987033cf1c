// Passes a failure from a task's promise to its awaiter without a throw. Part of nothrow.hpp.
#pragma once

#include <coroutine>
#include <exception>
#include <utility>
#include <weft/detail/base/config.hpp>
#include <weft/detail/core/root.hpp>
#include <weft/error.hpp>
#include <weft/task.hpp>

namespace weft::detail {

/// The boundary into which a task returns whose failure is passed on to its awaiter.
struct hands_on : boundary {
  hands_on(void (*callee_returned)(hands_on&), void (*stopped)(boundary&) noexcept) noexcept
      : boundary{returned, stopped, nullptr, nullptr}, callee_returned_{callee_returned} {}
  static void returned(frame* self);

 private:
  void (*callee_returned_)(hands_on&);
};

/// Whether a task that returns into `continuation` has its frame destroyed before any other code resumes.
bool destroys_at_once(std::coroutine_handle<> continuation) noexcept;

/// Ends the task that has suspended in `self` with `failure`. Returns what to resume next: `self`, if that has to throw it.
template <class Promise>
std::coroutine_handle<> fail_where_it_waits(std::coroutine_handle<Promise> self, std::exception_ptr& failure) noexcept {
  Promise& promise = self.promise();
  if (!destroys_at_once(promise.continuation)) return self;
  promise.set_exception(std::move(failure));
  promise.owner->top = promise.continuation;
  return promise.continuation;
}

class WEFT_TO_BE_AWAITED("a task fails when it awaits this: co_await fail_with(error)") failing : public knows_roots {
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

/// Awaits a task. If the task fails, the caller fails with the same exception.
template <class T>
class WEFT_TO_BE_AWAITED("nothrow does nothing until it is awaited") WEFT_ELIDABLE nothrow_awaiter : public knows_roots,
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

}  // namespace weft::detail

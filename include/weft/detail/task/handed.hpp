// An outcome on its way from one thread to another: what a promise and its future share, and the wait for it. How the two
// meet is told in core/handover.hpp. Part of future.hpp; a callback's is handed over so, too (from_callback.hpp).
#pragma once

#include <atomic>
#include <coroutine>
#include <cstdint>
#include <exception>
#include <type_traits>
#include <utility>
#include <weft/detail/base/atomic.hpp>
#include <weft/detail/core/handover.hpp>
#include <weft/detail/core/root.hpp>
#include <weft/detail/core/waiter.hpp>
#include <weft/detail/task/outcome.hpp>
#include <weft/error.hpp>

namespace weft::detail {

/// An outcome on its way from one thread to another, without its type.
class handed {
  friend class outcome_wait;
  friend class outcome_case;

 public:
  bool is_ready() const noexcept { return word_.is_ready(); }
  bool is_stopped() const noexcept { return how_ == wake_up::stopped; }  // once it is ready

 protected:
  handed() = default;
  ~handed() = default;

  /// Called by the completer, after it has written the outcome. Wakes the sleeper; a callback's outcome may be gone after
  /// this.
  void complete(wake_up how) noexcept;

  /// Around the call of a function that may complete this before it returns. A completer on this thread then needs no
  /// atomic exchange, which is most of what such an await costs.
  void begin_start() noexcept;
  void end_start() noexcept { starter_.store(0, std::memory_order_relaxed); }

  /// By a sleeper that has parked in `one`: enters, or ends the wait again. The sleeper may be gone after this.
  void wait(waiter& one) noexcept;

  /// By a stopper that has claimed the sleeper of `one`.
  on_stop leave(waiter& one) noexcept;

  /// Called by a select: enters `one`, in which nobody sleeps; false if the outcome is there. leave_beside() takes `one` out
  /// again; false if the completer has found it.
  bool enter_beside(waiter& one) noexcept;
  bool leave_beside(waiter& one) noexcept { return word_.leave(one); }

 private:
  handover word_;
  wake_up how_ = wake_up::completed;  // part of the outcome
  // The thread that is inside a start function; 0 outside. Relaxed: a thread looks for what it wrote itself, and any
  // other finds something else.
  atomic<std::uintptr_t> starter_{0};
};

/// The same with its type. All set_* functions complete it.
template <class T>
class handed_outcome : public handed, public outcome<T> {
 public:
  template <class... Value>
  void complete_with_value(Value&&... value) {
    if constexpr (std::is_void_v<T>)
      this->set_value(nothing{});
    else
      this->set_value(std::forward<Value>(value)...);
    complete(wake_up::completed);
  }
  void complete_with_exception(std::exception_ptr failure) noexcept {
    this->set_exception(std::move(failure));
    complete(wake_up::completed);
  }
  void complete_stopped() noexcept { complete(wake_up::stopped); }
  /// Whatever `how` is; if moving its value throws, that exception.
  void complete_with(result<T>&& how) noexcept {
    if (how.is_stopped()) return complete_stopped();
    if (std::exception_ptr failure = how.exception()) return complete_with_exception(std::move(failure));
    if constexpr (std::is_void_v<T>) {
      complete_with_value();
    } else {
      try {
        this->set_value(*std::move(how));
      } catch (...) {
        return complete_with_exception(std::current_exception());
      }
      complete(wake_up::completed);
    }
  }
};

/// What may be the argument of set_value; for a reference, an object that lives on.
template <class T, class U>
concept value_of =
    !std::is_void_v<T> && std::is_constructible_v<T, U> &&
    (!std::is_reference_v<T> || (std::is_lvalue_reference_v<U> &&
                                 std::is_convertible_v<std::remove_reference_t<U>*, std::remove_reference_t<T>*>));

/// What a promise and its future share; all but the outcome.
class future_state {
 public:
  void retain() noexcept { holders_.fetch_add(1, std::memory_order_relaxed); }  // the promise holds one
  /// True: that was the last.
  bool release() noexcept {
    return is_alone() || holders_.fetch_sub(1, std::memory_order_acq_rel) == 1;  // -> last, <- last
  }
  bool is_alone() const noexcept { return holders_.load(std::memory_order_acquire) == 1; }  // <- last

  /// Whether the caller is the one who sets it: of several, on whatever threads, the first. Relaxed: who lost does
  /// nothing with the outcome.
  bool claim() noexcept { return !claimed_.exchange(true, std::memory_order_relaxed); }
  void unclaim() noexcept { claimed_.store(false, std::memory_order_relaxed); }
  bool is_claimed() const noexcept { return claimed_.load(std::memory_order_relaxed); }

  bool future_taken = false;  // the promise's own

 private:
  // One for the promise, one for the future.
  //   edge last  the last use by one of them  ->  the destruction by the other
  atomic<unsigned> holders_{1};
  // Whether somebody sets it, or has. Relaxed, since it carries nothing: the outcome travels through the handover.
  atomic<bool> claimed_{false};
};

template <class T>
class shared_outcome final : public future_state, public handed_outcome<T> {};

/// Waits until an outcome of somebody else is there. Leaving has no effect.
class outcome_wait : waiter {
 public:
  explicit outcome_wait(handed& from) noexcept : waiter{type}, from_{&from} {}

  bool await_ready() const noexcept { return from_->is_ready() && !from_->is_stopped(); }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> caller) noexcept {
    suspend(suspending(caller));
    return true;  // the task may run elsewhere, or be gone, since the line before
  }
  void await_resume() const noexcept {}

 private:
  void suspend(root& self) noexcept;
  static on_stop leave(waiter& self) noexcept;
  static void tell(const waiter& self, const char* what, wait_subjects& into) noexcept {
    into.add(what, static_cast<const outcome_wait&>(self).from_);
  }
  static const wait_layout seen;
  static constexpr wait_type type{.leave = leave, .name = "future", .tell = tell, .layout = &seen};

  handed* from_;
};
WEFT_LAYOUT(outcome_wait, stored_at(WEFT_BEHIND_WAITER(outcome_wait, from_)));

/// `co_await` of a future, of which it takes over the state.
template <class T>
class future_awaiter : public outcome_wait {
 public:
  explicit future_awaiter(shared_outcome<T>* state) noexcept : outcome_wait{*state}, state_{state} {}
  future_awaiter(const future_awaiter&) = delete;
  ~future_awaiter() {
    if (state_->release()) delete state_;
  }
  T await_resume() { return state_->take(); }

 private:
  shared_outcome<T>* state_;
};

[[noreturn]] void throw_error(errc code, const char* operation);
[[noreturn]] void fail_empty_promise() noexcept;
[[noreturn]] void fail_empty_future() noexcept;
std::exception_ptr broken_promise() noexcept;
/// Blocks a plain thread.
void wait_for(handed& outcome);

}  // namespace weft::detail

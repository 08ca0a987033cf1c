// Bridges from code that is no coroutine: promise and future, and awaiting a callback.
//
// A promise is the end that a callback, a thread or another library sets; its future is the end that a task awaits, a
// plain thread waits for, or a continuation follows. They share one state, with one outcome and at most one who waits;
// how the two meet is told in core/handover.hpp. `from_callback`, in a file of its own, is the same without the
// shared state: the outcome lies in the awaiting frame.
//
// Rejected: (a) a list of continuations in the state: a future has one owner, so there is one who waits, and then() is
// a started task like any other. (b) A future that stops its producer when it is dropped: who sets a promise is often
// no task. (c) std::future underneath: it blocks threads and can't be awaited.
//
// Long because the two ends and when_all of futures share one state.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <type_traits>
#include <utility>
#include <weft/detail/base/atomic.hpp>
#include <weft/detail/core/handover.hpp>
#include <weft/pipe.hpp>
#include <weft/task.hpp>

namespace weft {

template <class T>
class future;

namespace detail {

template <class T>
class future_case;

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

  /// By the completer, after the outcome. Who waits goes on; a callback's outcome may be gone after this.
  void complete(wake_up how) noexcept;

  /// Around the call of a function that may complete this before it returns. A completer on this thread then needs no
  /// atomic exchange, which is most of what such an await costs.
  void begin_start() noexcept;
  void end_start() noexcept { starter_.store(0, std::memory_order_relaxed); }

  /// By a sleeper that has parked in `one`: enters, or ends the wait again. The sleeper may be gone after this.
  void wait(waiter& one) noexcept;

  /// By a stopper that has claimed the sleeper of `one`.
  on_stop leave(waiter& one) noexcept;

  /// By a select, in whose place nobody sleeps: false if the outcome is there. And out of it again: false if the completer
  /// has found it.
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
  static constexpr wait_type type{.leave = leave, .name = "future", .tell = tell};

  handed* from_;
};

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

}  // namespace detail

// ---- promise --------------------------------------------------------------------------------------------------------

/// The end that is set: once, by a value, an exception, or as stopped. T is void, a reference, or any type that moves.
///
///     w::promise<int> promise;
///     w::future<int> answer = promise.get_future();
///     on_reply([promise = std::move(promise)](int n) mutable { promise.set_value(n); });
///     int n = co_await std::move(answer);
///
/// Fails     a second set throws errc::promise_already_set, a second get_future errc::future_already_taken. Destroyed
///           without having been set, it fails its future with errc::broken_promise.
/// Threads   set from any. Of several that set it at once, one succeeds; the others throw, or get false from try_set.
///           Whoever waits without an executor of its own goes on inside the call that sets it.
/// Cost      one allocation, for it and its future.
template <class T = void>
class promise {
  static_assert(!std::is_rvalue_reference_v<T>, "a promise can't hold an rvalue reference: hold a value");

 public:
  using value_type = T;

  promise() : state_{new detail::shared_outcome<T>} {}
  promise(promise&& other) noexcept : state_{std::exchange(other.state_, nullptr)} {}
  promise& operator=(promise&& other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }
  ~promise() {
    if (state_ == nullptr) return;
    if (!state_->is_claimed() && !state_->is_alone()) state_->complete_with_exception(detail::broken_promise());
    if (state_->release()) delete state_;
  }

  /// Whether it was not moved from.
  explicit operator bool() const noexcept { return state_ != nullptr; }

  /// Whether the other end is there. Once it was taken and is gone, nobody will ever ask for the outcome.
  bool is_wanted() const noexcept { return !state().is_alone(); }

  /// Gives the other end, once. By who made the promise: not while another thread sets it.
  future<T> get_future() {
    if (state().future_taken) detail::throw_error(errc::future_already_taken, "get_future");
    state_->future_taken = true;
    state_->retain();
    return future<T>{state_};
  }

  /// Sets it to a value. Fails: as above, and with what the value's constructor throws; then it is not set.
  template <class U = T>
    requires detail::value_of<T, U>
  void set_value(U&& value) {
    detail::shared_outcome<T>& mine = claimed();
    try {
      mine.complete_with_value(std::forward<U>(value));
    } catch (...) {  // of the constructor: the rest can't throw
      mine.unclaim();
      throw;
    }
  }
  void set_value()
    requires std::is_void_v<T>
  {
    claimed().complete_with_value();
  }

  /// Sets it to an exception, which is thrown at the await.
  void set_exception(std::exception_ptr failure) { claimed().complete_with_exception(std::move(failure)); }

  /// Sets it to stopped: whoever awaits it ends stopped.
  void set_stopped() { claimed().complete_stopped(); }

  /// Sets it to any of the three; if moving the value throws, to that exception.
  void set_result(result<T>&& how) { claimed().complete_with(std::move(how)); }
  void set_result(const result<T>& how) { set_result(result<T>{how}); }

  /// The same, if it was not set before.
  bool try_set(result<T>&& how) {
    if (!state().claim()) return false;
    state_->complete_with(std::move(how));
    return true;
  }
  bool try_set(const result<T>& how) { return try_set(result<T>{how}); }

 private:
  detail::shared_outcome<T>& state() const noexcept {
    if (state_ == nullptr) detail::fail_empty_promise();
    return *state_;
  }
  detail::shared_outcome<T>& claimed() {
    if (!state().claim()) detail::throw_error(errc::promise_already_set, "set a promise");
    return *state_;
  }

  detail::shared_outcome<T>* state_;
};

// ---- future ---------------------------------------------------------------------------------------------------------

/// The end that is waited for, once: by a task (`co_await std::move(f)`), by a plain thread (`f.get()`), or by what
/// goes on from it (`f.then(g)`). Each of them takes the outcome, and leaves the future empty.
///
/// Suspends  only where it is not ready; resumes on the task's own executor.
/// Cancel    a stop leaves the future: the task ends stopped, and the promise can still be set, in vain. An outcome
///           that is being set meanwhile wins.
/// Fails     throws what the promise was set to; a future that is empty ends the program with a sentence.
/// Cost      no allocation to wait.
template <class T = void>
class [[nodiscard("the outcome comes with the future")]] future : public detail::knows_roots {
  template <class>
  friend class detail::future_case;

 public:
  using value_type = T;

  future() noexcept = default;  ///< empty: not to be waited for
  future(future&& other) noexcept : state_{std::exchange(other.state_, nullptr)} {}
  future& operator=(future&& other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }
  ~future() {
    if (state_ != nullptr && state_->release()) delete state_;
  }

  /// Whether there is something to wait for.
  explicit operator bool() const noexcept { return state_ != nullptr; }

  /// Whether the promise was set.
  bool is_ready() const { return state().is_ready(); }

  /// Blocks a plain thread until the promise was set; the future keeps the outcome.
  void wait() const { detail::wait_for(state()); }

  /// The same, and takes the outcome. Throws what failed, or `stopped`.
  T get() {
    wait();
    detail::future_awaiter<T> ended{take()};
    if (!ended.await_ready()) detail::throw_stopped();
    return ended.await_resume();
  }

  /// What `f` makes of the outcome, as a future. `f` is called with the value, and not at all if there is none; or with
  /// the `result<T>`, if it takes one. If it returns something to await (a task, a future), that is awaited too.
  ///
  /// Threads  `f` runs inside the call that sets the promise, or here if that has happened; or on `ex`.
  /// Cost     three allocations.
  template <class F>
  auto then(F&& f) {
    WEFT_EXPECTS_NO_DOOMED_TEMPORARY(F);
    return as_future(go_on(std::forward<F>(f)));
  }
  template <class F>
  auto then(executor& ex, F&& f) {
    WEFT_EXPECTS_NO_DOOMED_TEMPORARY(F);
    return as_future(ex, go_on(std::forward<F>(f)));
  }

  /// Has many wait for the outcome: copies of what this gives all refer to it, and each may be awaited again and again, by
  /// tasks, fibers and sync_wait. `co_await s` gives a `const T&` (void gives void, a reference the reference).
  ///
  ///     const w::shared_task<config> settings = promise.get_future().share();
  ///     const config& mine = co_await settings;
  ///
  /// Cancel   a waiter that is stopped leaves. Unlike in any other shared_task, the last one stops nothing.
  /// Threads  copies may be awaited from any thread, one copy from one at a time.
  /// Fails    std::bad_alloc; then the outcome is nobody's.
  /// Cost     two allocations.
  shared_task<T> share() {
    static_cast<void>(state());
    shared_task<T> all{detail::await_in_task<future>(std::move(*this))};
    all.state_->start_here();
    return all;
  }

  detail::future_awaiter<T> operator co_await() && noexcept { return detail::future_awaiter<T>{take()}; }

 private:
  friend promise<T>;

  explicit future(detail::shared_outcome<T>* state) noexcept : state_{state} {}

  detail::shared_outcome<T>& state() const noexcept {
    if (state_ == nullptr) detail::fail_empty_future();
    return *state_;
  }
  detail::shared_outcome<T>* take() noexcept {
    static_cast<void>(state());
    return std::exchange(state_, nullptr);
  }
  template <class F>
  WEFT_COROUTINE_TAKES_OVER auto go_on(F&& f) {
    static_cast<void>(state());
    return std::move(*this) | weft::then(std::forward<F>(f));
  }

  detail::shared_outcome<T>* state_ = nullptr;
};

template <class T>
void awaiter_in_root(future<T>&) noexcept {
  static_assert(!sizeof(T*), "a future is awaited once, as an rvalue: co_await std::move(f)");
}

/// A future that is ready: `make_ready_future(7)`, `make_ready_future<T>(value)`, `make_ready_future()`.
template <class T>
future<std::decay_t<T>> make_ready_future(T&& value) {
  promise<std::decay_t<T>> promise;
  promise.set_value(std::forward<T>(value));
  return promise.get_future();
}
inline future<> make_ready_future() {
  promise<> promise;
  promise.set_value();
  return promise.get_future();
}

/// A future that has failed: `make_exceptional_future<T>(std::runtime_error{"…"})`, or with a std::exception_ptr.
template <class T = void>
future<T> make_exceptional_future(std::exception_ptr failure) {
  promise<T> promise;
  promise.set_exception(std::move(failure));
  return promise.get_future();
}
template <class T = void, class Exception>
  requires(!std::is_convertible_v<Exception, std::exception_ptr>)
future<T> make_exceptional_future(Exception failure) {
  return make_exceptional_future<T>(std::make_exception_ptr(std::move(failure)));
}

/// Starts an awaitable, as start() does, and gives its outcome as a future. What it refers to must live until that is
/// ready; dropping the future stops nothing.
///
/// Threads  it starts here and at once, and goes on wherever what it waits for completes; or on `ex`.
/// Cost     two allocations.
template <awaitable Awaitable>
future<await_result<Awaitable>> as_future(Awaitable&& awaitable, stop_token stop = {}) {
  using value_type = await_result<Awaitable>;
  promise<value_type> promise;
  auto outcome = promise.get_future();
  start(
      detail::as_task(std::forward<Awaitable>(awaitable)),
      [promise = std::move(promise)](result<value_type>&& how) mutable { promise.set_result(std::move(how)); }, stop);
  return outcome;
}
template <awaitable Awaitable>
future<await_result<Awaitable>> as_future(executor& ex, Awaitable&& awaitable, stop_token stop = {}) {
  using value_type = await_result<Awaitable>;
  promise<value_type> promise;
  auto outcome = promise.get_future();
  start(
      ex, detail::as_task(std::forward<Awaitable>(awaitable)),
      [promise = std::move(promise)](result<value_type>&& how) mutable { promise.set_result(std::move(how)); }, stop);
  return outcome;
}

}  // namespace weft

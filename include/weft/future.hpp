// Bridges from code that is no coroutine: promise and future, and awaiting a callback.
//
//     w::promise<int> promise;
//     w::future<int> answer = promise.get_future();
//     on_reply([promise = std::move(promise)](int n) mutable { promise.set_value(n); });
//     int n = co_await std::move(answer);
//
// A promise is the end that a callback, a thread or another library sets; its future is the end that a task awaits, a
// plain thread waits for, or a continuation follows. They share one state, with one outcome and at most one who waits;
// how the two meet is told in core/handover.hpp. `from_callback`, in a file of its own, is the same without the
// shared state: the outcome lies in the awaiting frame.
//
// Rejected: (a) a list of continuations in the state: a future has one owner, so there is one who waits, and then() is
// a started task like any other. (b) A future that stops its producer when it is dropped: who sets a promise is often
// no task. (c) std::future underneath: it blocks threads and can't be awaited.
#pragma once

#include <exception>
#include <type_traits>
#include <utility>
#include <weft/detail/task/handed.hpp>
#include <weft/error.hpp>
#include <weft/executor.hpp>
#include <weft/pipe.hpp>
#include <weft/stop.hpp>
#include <weft/task.hpp>

namespace weft {

template <class T>
class future;
template <class T>
class shared_task;

namespace detail {
template <class T>
class future_case;
}  // namespace detail

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

/// Says of a future with a name that it is awaited as an rvalue.
template <class T>
detail::refused_awaiter awaiter_in_root(future<T>&) noexcept {
  static_assert(!sizeof(T*), "a future is awaited once, as an rvalue: co_await std::move(f)");
  return {};
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
template <detail::awaitable_argument Awaitable>
future<await_result<Awaitable>> as_future(Awaitable&& awaitable, stop_token stop = {}) {
  using value_type = await_result<Awaitable>;
  promise<value_type> promise;
  auto outcome = promise.get_future();
  start(
      detail::as_task(std::forward<Awaitable>(awaitable)),
      [promise = std::move(promise)](result<value_type>&& how) mutable { promise.set_result(std::move(how)); }, stop);
  return outcome;
}
template <detail::awaitable_argument Awaitable>
future<await_result<Awaitable>> as_future(executor& ex, Awaitable&& awaitable, stop_token stop = {}) {
  using value_type = await_result<Awaitable>;
  promise<value_type> promise;
  auto outcome = promise.get_future();
  start(
      ex, detail::as_task(std::forward<Awaitable>(awaitable)),
      [promise = std::move(promise)](result<value_type>&& how) mutable { promise.set_result(std::move(how)); }, stop);
  return outcome;
}
template <int = 0>
void as_future(detail::refused<>, stop_token = {});
template <int = 0>
void as_future(detail::given<executor&>, detail::refused<>, stop_token = {});

}  // namespace weft

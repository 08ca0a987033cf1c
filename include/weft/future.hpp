// Bridges from code that is no coroutine: promise and future, and awaiting a callback.
//
//     w::promise<int> promise;
//     w::future<int> answer = promise.get_future();
//     on_reply([promise = std::move(promise)](int n) mutable { promise.set_value(n); });
//     int n = co_await std::move(answer);
//
// A promise is the end that a callback, a thread or another library sets. Its future is the end that a task awaits, a plain
// thread waits for, or a continuation is attached to. Both share one state, with one outcome and at most one waiter;
// detail/core/handover.hpp says how the setter and the waiter meet. from_callback(), in from_callback.hpp, does the same
// without a shared state: the outcome lies in the awaiting frame.
//
// Rejected: (a) a list of continuations in the state: a future has one owner, so there is one waiter, and then() starts a task
// like any other. (b) A future that stops its producer when it is dropped: who sets a promise is often no task. (c) std::future
// underneath: it blocks threads and can't be awaited.
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

/// Sets an outcome once: a value, an exception, or stopped. T is void, a reference, or any type that can be moved.
///
///     w::promise<int> promise;
///     w::future<int> answer = promise.get_future();
///     on_reply([promise = std::move(promise)](int n) mutable { promise.set_value(n); });
///     int n = co_await std::move(answer);
///
/// Fails     a second set throws errc::promise_already_set, a second get_future() errc::future_already_taken. The destructor of
///           a promise that was not set fails its future with errc::broken_promise. Use after a move ends the program.
/// Threads   may be set on any. Of several that set it at once, one succeeds; the others throw, or get false from try_set(). A
///           waiter that has no executor resumes inside the call that sets it.
/// Cost      one allocation, shared with its future.
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

  /// False: it was moved from.
  explicit operator bool() const noexcept { return state_ != nullptr; }

  /// Whether its future, or a waiter that has taken over from it, exists. False before get_future(), and once nobody can ask
  /// for the outcome any more.
  bool is_wanted() const noexcept { return !state().is_alone(); }

  /// Gives its future, once. Must not be called while another thread sets the promise.
  future<T> get_future() {
    if (state().future_taken) detail::throw_error(errc::future_already_taken, "get_future");
    state_->future_taken = true;
    state_->retain();
    return future<T>{state_};
  }

  /// Sets it to a value. Where the value's constructor throws, that exception is thrown here, and the promise is not set.
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

  /// Sets it to whatever `how` holds; if moving the value throws, to that exception.
  void set_result(result<T>&& how) { claimed().complete_with(std::move(how)); }
  void set_result(const result<T>& how) { set_result(result<T>{how}); }

  /// The same, but gives false where it was set before, and does not throw then.
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

/// Waits for an outcome, once: in a task (`co_await std::move(f)`), on a plain thread (`f.get()`), or by a continuation
/// (`f.then(g)`). Each of these takes the outcome and leaves the future empty.
///
/// Suspends  only where it is not ready; resumes on the task's own executor.
/// Cancel    a stopped task ends stopped, and the future is gone; the promise can still be set, without effect. An outcome that
///           is being set at that moment wins.
/// Fails     throws the exception that the promise was set to. To wait for an empty future ends the program with a sentence.
/// Threads   one at a time.
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

  /// False: it is empty.
  explicit operator bool() const noexcept { return state_ != nullptr; }

  /// Whether the promise was set. Does not wait.
  bool is_ready() const { return state().is_ready(); }

  /// Blocks the calling thread, which runs no task, until the promise was set. Does not take the outcome.
  void wait() const { detail::wait_for(state()); }

  /// Blocks likewise, then takes the outcome: gives the value, or throws the exception, or `stopped`.
  T get() {
    wait();
    detail::future_awaiter<T> ended{take()};
    if (!ended.await_ready()) detail::throw_stopped();
    return ended.await_resume();
  }

  /// Calls `f` with the value and gives what it returns as a future. An `f` that takes a `result<T>` is called with any
  /// outcome; other functions are not called if there is no value, and the failure or stop is passed on. If `f` returns
  /// something that can be awaited (a task, a future), that is awaited, too.
  ///
  /// Threads  `f` runs on `ex`; without that, inside the call that sets the promise, or inside then() if it was set before.
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

  /// Gives a shared_task, by whose copies any number of tasks, fibers and sync_waits can wait for the outcome, also repeatedly.
  /// `co_await s` gives a `const T&` (void gives void, a reference the reference).
  ///
  ///     const w::shared_task<config> settings = promise.get_future().share();
  ///     const config& mine = co_await settings;
  ///
  /// Cancel   a waiter that is stopped leaves. Unlike in any other shared_task, the last one stops nothing.
  /// Threads  copies may be awaited on any thread, each copy on one at a time.
  /// Fails    std::bad_alloc; the outcome is lost then.
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

/// Refuses, at compile time, to await a future as an lvalue.
template <class T>
detail::refused_awaiter awaiter_in_root(future<T>&) noexcept {
  static_assert(!sizeof(T*), "a future is awaited once, as an rvalue: co_await std::move(f)");
  return {};
}

/// Makes a future that is ready: `make_ready_future(7)`, `make_ready_future<T>(value)`, `make_ready_future()`.
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

/// Makes a future that has failed: `make_exceptional_future<T>(std::runtime_error{"…"})`, or with a std::exception_ptr.
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

/// Starts an awaitable, as start() does, and gives its outcome as a future. What it refers to must live until the future is
/// ready. To drop the future stops nothing.
///
/// Cancel   when `stop` is stopped, so is the work; the future ends stopped.
/// Threads  it starts within this call, up to its first wait, and resumes wherever what it waits for completes; given `ex`, it
///          runs there from the beginning.
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
template <int = 0>
detail::void_is_no_awaitable as_future(...);

}  // namespace weft

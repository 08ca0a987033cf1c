// Awaits a function that reports its result through a callback.
//
//     std::string text = co_await w::from_callback<std::string>([&](w::callback<std::string> done) { http.get(url, done); });
//
// The outcome lies in the awaiting frame, so a callback is a pointer to it. If the callback comes before the function returns,
// the task goes on without having suspended. A stop can't end the wait, since the callback will still come and needs the frame:
// the stop is forwarded to `cancel`, and the wait goes on until the callback has come.
#pragma once

#include <type_traits>
#include <utility>
#include <weft/detail/base/invoke.hpp>
#include <weft/detail/base/standard.hpp>
#include <weft/future.hpp>

namespace weft {

namespace detail {

template <class T, class Start, class Cancel>
class callback_awaiter;

}  // namespace detail

/// Reports a result to the task that awaits it in from_callback(). It is called exactly once, on any thread, through any of its
/// copies. It is a pointer; for a C function that takes a `void*`, there are address() and from_address().
///
/// Lifetime  valid until it is called; the call touches nothing of it afterwards. If it is never called, the task waits for
///           ever. A second call is undefined: it uses memory of a frame that may be gone.
/// Threads   any. The task resumes on its own executor; if it has none, inside the call.
template <class T = void>
class callback {
 public:
  /// Reports a value.
  template <class U = T>
    requires detail::value_of<T, U>
  void operator()(U&& value) const {
    awaiting_->complete_with_value(std::forward<U>(value));
  }
  void operator()() const
    requires std::is_void_v<T>
  {
    awaiting_->complete_with_value();
  }
  template <class U = T>
    requires detail::value_of<T, U>
  void set_value(U&& value) const {
    (*this)(std::forward<U>(value));
  }
  void set_value() const
    requires std::is_void_v<T>
  {
    (*this)();
  }

  /// Reports a failure, which is thrown at the await.
  void set_exception(std::exception_ptr failure) const noexcept {
    awaiting_->complete_with_exception(std::move(failure));
  }

  /// Reports that the operation was cancelled: the awaiting task ends stopped.
  void set_stopped() const noexcept { awaiting_->complete_stopped(); }

  /// For a C library that passes a `void*` to its callback: `from_address(done.address())` is `done` again.
  void* address() const noexcept { return awaiting_; }
  static callback from_address(void* address) noexcept {
    return callback{*static_cast<detail::handed_outcome<T>*>(address)};
  }

 private:
  template <class, class, class>
  friend class detail::callback_awaiter;
  explicit callback(detail::handed_outcome<T>& awaiting) noexcept : awaiting_{&awaiting} {}

  detail::handed_outcome<T>* awaiting_;
};

namespace detail {

struct no_cancel {};

/// Starts, and waits for the callback. A stop calls `cancel`, and waits on.
template <class T, class Start, class Cancel>
class callback_awaiter : waiter, handed_outcome<T> {
 public:
  callback_awaiter(Start& start, Cancel& cancel) noexcept : waiter{type}, start_{start}, cancel_{cancel} {}
  callback_awaiter(const callback_awaiter&) = delete;

  bool await_ready() const noexcept { return false; }

  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> caller) {
    root& self = suspending(caller);
    if (self.sleeper::stop_requested()) return (end_stopped(self), true);
    this->begin_start();
    detail::invoke(start_, callback<T>{*this});
    this->end_start();
    if (this->is_ready()) [[likely]]
      return this->is_stopped() && (end_stopped(self), true);
    if (self.park_forwarding(*this)) cancel();  // the callback may come meanwhile, and waits for enter()
    this->wait(*this);
    return true;  // the task may run elsewhere, or be gone, since the line before
  }
  T await_resume() { return this->take(); }

 private:
  static on_stop forward_stop(waiter& self) noexcept {
    static_cast<callback_awaiter&>(self).cancel();
    return on_stop::forwarded;
  }
  static constexpr wait_type type{.leave = forward_stop, .name = "callback"};

  // Called by the stopper, or by the sleeper itself if the stop came before it parked.
  void cancel() noexcept {
    if constexpr (!std::is_same_v<Cancel, no_cancel>) {
      auto cancels = [this]() noexcept(noexcept(detail::invoke(cancel_))) { detail::invoke(cancel_); };
      call_no_throw(cancels, "the cancel function of a from_callback threw, where nobody could catch it");
    }
  }

  Start& start_;
  Cancel& cancel_;
};

template <class T, class Start, class Cancel>
class WEFT_TO_BE_AWAITED("from_callback does nothing until it is awaited") callback_source : public knows_roots {
 public:
  template <class S, class C>
  callback_source(S&& start, C&& cancel) : start_(std::forward<S>(start)), cancel_(std::forward<C>(cancel)) {}

  callback_awaiter<T, Start, Cancel> operator co_await() noexcept { return {start_, cancel_}; }

 private:
  Start start_;
  [[no_unique_address]] Cancel cancel_;
};

}  // namespace detail

/// Awaits a function that reports its result through a callback. Calls `start(done)` with a `callback<T> done`, which must be
/// called exactly once, now or later, on any thread: `done(value)`, `done.set_exception(e)` or `done.set_stopped()`.
///
///     int n = co_await w::from_callback<int>([&](w::callback<int> done) {
///       socket.async_read(buffer, [done](int n) { done(n); });
///     });
///
/// Suspends  only if the callback has not come when `start` returns; resumes on the task's own executor.
/// Cancel    calls `cancel()` once, on the thread that stops, perhaps at the same time as the callback. Then it waits for the
///           callback, whose result counts: a value that comes all the same is not lost. Without `cancel`, a stopped task waits
///           for the callback, too. A task that was stopped before does not call `start`.
/// Fails     throws what `start` throws, which must not have kept the callback then, or what the callback reports.
/// Lifetime  both functions are moved into the awaiting frame, and what they refer to outlives the callback.
/// Threads   `start` is called on the task's thread. `cancel` must not throw, and must not wait for the callback.
/// Cost      no allocation. A callback that comes before `start` returns costs a few ns.
template <class T = void, class Start>
  requires std::is_invocable_v<std::decay_t<Start>&, callback<T>>
auto from_callback(Start&& start) {
  WEFT_EXPECTS_NO_DOOMED_TEMPORARY(Start);
  return detail::callback_source<T, std::decay_t<Start>, detail::no_cancel>{std::forward<Start>(start),
                                                                            detail::no_cancel{}};
}
template <class T = void, class Start, class Cancel>
  requires std::is_invocable_v<std::decay_t<Start>&, callback<T>> && std::is_invocable_v<std::decay_t<Cancel>&>
auto from_callback(Start&& start, Cancel&& cancel) {
  WEFT_EXPECTS_NO_DOOMED_TEMPORARY(Start);
  WEFT_EXPECTS_NO_DOOMED_TEMPORARY(Cancel);
  return detail::callback_source<T, std::decay_t<Start>, std::decay_t<Cancel>>{std::forward<Start>(start),
                                                                               std::forward<Cancel>(cancel)};
}

}  // namespace weft

// Clocks, and sleeping by them.
//
//     co_await w::sleep_for(10ms);
//     co_await w::sleep_until(w::current_clock().now() + 1s);
//
// A task sleeps by the clock of its environment, so a test can replace real time by a virtual clock. A clock keeps timers:
// intrusive nodes that fire at a time point. A sleeping task has one in its frame, so nothing is allocated.
//
// The protocol between a timer's owner and a clock:
//
//   arm      by the owner. From here on the clock refers to the timer, and calls its function once, on a thread of its choice,
//            holding no lock, and never inside arm()
//   fire     the clock no longer refers to the timer when it calls the function, which may arm the timer again or destroy it
//   cancel   by the owner, on any thread. When it returns, the clock does not refer to the timer, and the function does not
//   run:
//            cancel() waits for a function that runs, unless that is what calls cancel(). If the function has armed the timer
//            again, the rest of it may still run when cancel() returns: so arming is the last thing that a function does
//
// A stop that ends a sleep races with the timer. A handover (core/handover.hpp) decides which of them ends it, so a clock knows
// nothing of waits and stops. The timer is armed before its sleeper parks, and may fire before that.
//
// Rejected: a clock that parks sleepers under its own lock. Every clock, also that of a test, would have to implement the
// protocol of waits, to save two atomic operations of a wait that enters the kernel.
#pragma once

#include <coroutine>
#include <weft/detail/base/config.hpp>
#include <weft/detail/base/duration.hpp>
#include <weft/detail/base/forward.hpp>
#include <weft/detail/core/handover.hpp>
#include <weft/detail/core/root.hpp>
#include <weft/timer.hpp>

namespace weft {

/// Tells the time, and fires timers. The process has a real one; a test may have its own.
///
/// Threads   all members from any thread.
/// Lifetime  outlives all work that runs by it.
class clock {
 public:
  using duration = std::chrono::steady_clock::duration;
  using time_point = timer::time_point;

  virtual time_point now() const noexcept = 0;  ///< the current time; any thread

  /// Arms a timer that is not armed, to fire once at `when`, or soon if that has passed: never earlier, and never inside this
  /// call.
  virtual void arm(timer& one, time_point when) noexcept = 0;

  /// Disarms a timer. True: it does not fire. False: it was not armed, or it has fired; its function has returned then, unless
  /// that called this.
  virtual bool cancel(timer& one) noexcept = 0;

 protected:
  clock() = default;
  clock(const clock&) = default;
  clock& operator=(const clock&) = default;
  ~clock() = default;
};

/// The process's clock: std::chrono::steady_clock, with a thread that the first timer starts.
///
/// Timers fire on that thread, one after the other, in the order of their times. A task without an executor is resumed there,
/// so one that computes for long delays all later timers. What the thread that has armed a timer does meanwhile does not
/// matter.
///
/// At the end of the process that thread ends, after the timer that is firing. A timer that is armed later, by the destructor
/// of a static or by a thread that runs on, starts a thread again. A child of fork() keeps the timers that the forking thread
/// has armed for tasks on no pool, and starts a thread of its own with the first timer that it arms.
///
/// Cost    6 ns to arm and cancel a timer on a worker of a pool, 18 ns on other threads, also beside a million other timers. A
///         timer that is due before all others also wakes the thread. The first timer of a worker allocates a wheel of 4 KiB.
/// Source  Varghese and Lauck, "Hashed and hierarchical timing wheels", SOSP (1987), with a wheel for each worker; and a
///         pairing heap for timers that are due within two milliseconds.
/// Fails   ends the program with a sentence where the system gives no thread. Misuse: so does arming a timer twice.
clock& real_clock() noexcept;

/// The clock of the task that runs on this thread; outside of tasks, the real one.
clock& current_clock() noexcept;

namespace detail {

/// That of an environment.
inline clock& clock_of(const root& of) noexcept {
  return of.env != nullptr && of.env->clock != nullptr ? *of.env->clock : real_clock();
}

constexpr clock::time_point later(clock::time_point from, clock::duration by) noexcept {
  return by > clock::time_point::max() - from ? clock::time_point::max() : from + by;
}

/// Sleeps until a time, or for one.
class sleep_awaiter : waiter, timer {
 public:
  explicit sleep_awaiter(clock::time_point until) noexcept : waiter{type}, timer{fire_now}, until_{until} {}
  explicit sleep_awaiter(clock::duration d) noexcept : waiter{type}, timer{fire_now}, for_{d}, relative_{true} {}

  bool await_ready() const noexcept { return false; }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> caller) noexcept {
    return suspend(suspending(caller));  // the task may run elsewhere, or be gone, after this line
  }
  void await_resume() const noexcept {}

 private:
  bool suspend(root& self) noexcept;
  static void fire_now(timer& self) noexcept;
  static on_stop leave(waiter& self) noexcept;
  static void tell(const waiter& self, const char* what, wait_subjects& into) noexcept {
    into.add(what, static_cast<const sleep_awaiter&>(self).clock_);
  }
  static const wait_layout seen;
  static constexpr wait_type type{.leave = leave, .name = "clock", .tell = tell, .layout = &seen};

  clock::time_point until_{};
  clock::duration for_{};
  clock* clock_ = nullptr;
  handover fired_;
  bool relative_ = false;
};
WEFT_LAYOUT(sleep_awaiter, stored_at(WEFT_BEHIND_WAITER(sleep_awaiter, clock_)));

/// The time is fixed where the sleep begins, so that one that was made earlier sleeps no less.
template <class When>
class WEFT_TO_BE_AWAITED("a task sleeps when it awaits this") sleep : public knows_roots {
 public:
  explicit sleep(When when) noexcept : when_{when} {}
  sleep_awaiter operator co_await() const noexcept { return sleep_awaiter{when_}; }

 private:
  When when_;
};

}  // namespace detail

/// Sleeps for `d`, by the clock of the environment: `co_await sleep_for(5ms);`.
///
/// Suspends  if `d` is above zero; resumes on its own executor, not earlier. A duration beyond the range of the clock lasts for
///           ever.
/// Cancel    ends the sleep at once; the task ends stopped. It also does so where `d` is zero.
/// Cost      no allocation.
template <class Rep, class Period>
detail::sleep<clock::duration> sleep_for(std::chrono::duration<Rep, Period> d) noexcept {
  return detail::sleep<clock::duration>{detail::saturated(d)};
}

/// Sleeps until `when`; otherwise as sleep_for.
inline detail::sleep<clock::time_point> sleep_until(clock::time_point when) noexcept {
  return detail::sleep<clock::time_point>{when};
}
template <class Duration>
detail::sleep<clock::time_point> sleep_until(
    std::chrono::time_point<std::chrono::steady_clock, Duration> when) noexcept {
  return detail::sleep<clock::time_point>{detail::saturated(when)};
}

}  // namespace weft

// Time, as work sees it: what clock it sleeps by, and sleeping.
//
//     co_await w::sleep_for(10ms);
//     co_await w::sleep_until(w::current_clock().now() + 1s);
//
// A clock is found through the environment, so that a program sleeps in real time and its tests in none. It keeps
// timers, intrusive nodes that fire at a time point; whoever sleeps has one in its frame, and nothing is allocated.
//
// A timer and the clock that holds it:
//
//   arm      by the timer's owner. The clock refers to the timer from here on, and calls its function once, under no
//            lock, on a thread of the clock's choice: never inside arm()
//   fire     the clock has let go of the timer before it calls the function, which may arm it again or end it
//   cancel   by the timer's owner, any thread. When it returns, the clock does not refer to the timer, and its function
//            does not run: cancel() waits where it does, unless it is called inside that function. Where the timer was armed
//            anew since that function began, what the function does behind that may still run: so it arms it last of all
//
// A sleep that a stop ends races its timer. Who ends it is decided by a handover (core/handover.hpp), so a clock knows
// nothing of waits and stops: the timer is armed before its sleeper parks, and may fire before that.
//
// Rejected: a clock that parks sleepers under its own lock: every clock, also one that a test brings, would have to know
// the protocol of waits, to save two atomic operations of a wait that goes through the kernel.
#pragma once

#include <coroutine>
#include <weft/detail/base/config.hpp>
#include <weft/detail/base/duration.hpp>
#include <weft/detail/base/forward.hpp>
#include <weft/detail/core/handover.hpp>
#include <weft/detail/core/root.hpp>
#include <weft/detail/core/timer.hpp>

namespace weft {

/// A service that tells when a time has come. The process has a real one; a test brings its own.
///
/// Threads   all members from any thread.
/// Lifetime  outlives all work that runs by it.
class clock {
 public:
  using duration = std::chrono::steady_clock::duration;
  using time_point = timer::time_point;

  virtual time_point now() const noexcept = 0;  ///< the time by which its timers fire; any thread

  /// Has `one`, which is not armed, fire at `when`: once, never early, soon if that has passed, never inside this call.
  virtual void arm(timer& one, time_point when) noexcept = 0;

  /// Takes `one` out. True: it does not fire. False: it was not armed, or has fired; then its function has returned, or is
  /// what called this.
  virtual bool cancel(timer& one) noexcept = 0;

 protected:
  clock() = default;
  clock(const clock&) = default;
  clock& operator=(const clock&) = default;
  ~clock() = default;
};

/// The process's clock: std::chrono::steady_clock, and a thread that its first timer starts.
///
/// Timers fire on that thread, one after the other, those that are late in the order of their times: all that is due is put
/// in order before the first of it fires. It does not matter what the thread that has armed them does. A task without an
/// executor also goes on there, so one that computes for long delays all others.
///
/// At the end of the process that thread ends: the timer that is firing is waited for, and no other fires unless one is
/// armed after that, by the destructor of a static or a thread that runs on; this starts a thread again. After a fork() the
/// child has those timers that the forking thread has armed for what runs on no pool, and a thread of its own with the first
/// one that it arms.
///
/// Cost    to arm and to cancel, together: 6 ns on one worker of a pool, 18 ns on a thread that is none, beside a million as
///         alone. One that is due before all others also wakes the thread. The first one that a worker arms allocates its
///         wheel, 4 KiB.
/// Source  Varghese and Lauck, "Hashed and hierarchical timing wheels", SOSP (1987), a wheel a worker; and a pairing heap for
///         what is due within two milliseconds.
/// Fails   a system that gives no thread ends the program with a sentence, and so does a timer that is armed twice.
clock& real_clock() noexcept;

/// The clock of the task that runs on this thread; outside of any, the real one.
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
class [[nodiscard("a task sleeps when it awaits this")]] sleep : public knows_roots {
 public:
  explicit sleep(When when) noexcept : when_{when} {}
  sleep_awaiter operator co_await() const noexcept { return sleep_awaiter{when_}; }

 private:
  When when_;
};

}  // namespace detail

/// Sleeps for `d`, by the clock of the environment: `co_await sleep_for(5ms);`.
///
/// Suspends  if `d` is above zero; resumes on its own executor, not earlier. One that is longer than the clock can tell lasts
///           for ever.
/// Cancel    wakes at once, and ends stopped. Also where `d` is zero, a task that was told to stop ends here.
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

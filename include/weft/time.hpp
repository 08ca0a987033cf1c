// Periodic ticks: interval. Sleeping and clocks are in clock.hpp; timeout and retry, in timed.hpp.
//
//     w::task<> beat(heart& of) {
//       for (w::interval every{100ms};;) {
//         co_await every.next();
//         of.beat();
//       }
//     }
//
// A repeating timer is a fork with such a loop. A stop of the fork ends it, and so does a `co_return` in the loop. See the
// book.
#pragma once

#include <utility>
#include <weft/clock.hpp>
#include <weft/detail/base/config.hpp>
#include <weft/detail/base/duration.hpp>

namespace weft {

/// What an interval does about ticks that were not awaited in time.
enum class missed_ticks {
  skip,   ///< drops them: the next tick is at the next multiple of the period
  burst,  ///< makes up for them: the missed ticks come at once, one after the other
  delay,  ///< shifts them: the next tick comes a whole period after the late one was taken, and later ones follow from there
};

class interval;

namespace detail {
class tick_awaiter;
struct next_tick;
}  // namespace detail

/// Ticks once in each period, by the clock of the task that awaits it. It does not drift: however late a tick is taken, the
/// next one is due a period after that one was due (except with missed_ticks::delay).
///
/// It begins when the first tick is awaited, which comes one period later.
///
/// Misuse    a period that is not above zero ends the program with a sentence; so do two tasks that await it at once.
/// Threads   any thread, one at a time. Do not move it while it is awaited.
class interval {
 public:
  /// `missed` says what happens to ticks that were not awaited in time.
  template <class Rep, class Period>
  explicit interval(std::chrono::duration<Rep, Period> period, missed_ticks missed = missed_ticks::skip) noexcept
      : interval{at_full_width{}, detail::saturated(period), missed} {}

  /// Waits for the next tick, and gives the time at which it was due: earlier than now if it is late.
  ///
  /// Suspends  unless the tick is due; resumes on its own executor, not earlier.
  /// Cancel    ends the wait at once; the task ends stopped, and has taken no tick.
  /// Cost      that of sleep_until(); no allocation.
  [[nodiscard("nothing happens until it is awaited")]] detail::next_tick next() noexcept;

  /// Starts it again: the next tick comes one period after it is awaited.
  void reset() noexcept { has_begun_ = false; }

  clock::duration period() const noexcept { return period_; }  ///< the time between two ticks

 private:
  friend detail::tick_awaiter;
  struct at_full_width {};
  interval(at_full_width, clock::duration period, missed_ticks missed) noexcept : period_{period}, missed_{missed} {
    WEFT_EXPECTS(period > clock::duration::zero(), "an interval was given a period that is no time");
  }

  // When the next tick is due; now, if it has not begun, is `now`.
  clock::time_point due(clock::time_point now) noexcept {
    if (!std::exchange(has_begun_, true)) due_ = detail::later(now, period_);
    return due_;
  }
  // That was taken. `now` is not before it.
  void taken(clock::time_point now) noexcept {
    switch (missed_) {
      case missed_ticks::skip: due_ += (now - due_) / period_ * period_; break;  // the last one that has passed
      case missed_ticks::burst: break;
      case missed_ticks::delay: due_ = now; break;
    }
    due_ = detail::later(due_, period_);
  }

  clock::time_point due_{};
  clock::duration period_;
  missed_ticks missed_;
  bool has_begun_ = false;
  bool is_awaited_ = false;
};

namespace detail {

class tick_awaiter : public sleep_awaiter {
 public:
  explicit tick_awaiter(interval& of) noexcept : sleep_awaiter{of.due(current_clock().now())}, of_{&of} {
    WEFT_EXPECTS(!std::exchange(of.is_awaited_, true),
                 "two tasks await the next tick of one interval at once: which of them gets it would be chance");
  }
  tick_awaiter(const tick_awaiter&) = delete;
  ~tick_awaiter() {
    if (of_ != nullptr) of_->is_awaited_ = false;  // stopped
  }

  // Lets go of the interval: the rest of the expression may await it again.
  clock::time_point await_resume() noexcept {
    interval& of = *std::exchange(of_, nullptr);
    of.is_awaited_ = false;
    const clock::time_point was_due = of.due_;
    of.taken(current_clock().now());
    return was_due;
  }

 private:
  interval* of_;
};

struct WEFT_TO_BE_AWAITED("nothing happens until it is awaited") next_tick : knows_roots {
  explicit next_tick(interval& ticks) noexcept : of{ticks} {}
  tick_awaiter operator co_await() const noexcept { return tick_awaiter{of}; }
  interval& of;
};

}  // namespace detail

inline detail::next_tick interval::next() noexcept { return detail::next_tick{*this}; }

}  // namespace weft

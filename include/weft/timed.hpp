// Against time: timeout and retry.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <type_traits>
#include <utility>
#include <weft/clock.hpp>
#include <weft/detail/base/duration.hpp>
#include <weft/detail/base/forward.hpp>
#include <weft/detail/join/timed.hpp>
#include <weft/detail/task/pipe.hpp>
#include <weft/task.hpp>

namespace weft {

/// Awaits `work`, and stops it when that takes longer than `limit`. Gives what it gives. `t | timeout(5s)` is the same.
///
///     auto reply = co_await w::timeout(200ms, ask(server));
///
/// Suspends  until `work` has ended: one that ignores its stop is waited for.
/// Cancel    a stop goes to `work`. If that ends stopped, so does this, also where the time was over before.
/// Fails     errc::timed_out, if `work` was stopped because of the time, and this task was not told to stop. If it has a value
///           all the same, that is given, and what it throws is thrown; a scope whose forks were stopped has none. A `limit` of
///           zero gives it no time to wait.
/// Cost      a child as of when_all, and a look at the clock (23 ns); where it waits, a timer. With a `receive` on one worker of
///           a pool, some 60 ns more than that by itself where it has a value at once, 75 ns where it waits.
template <class Rep, class Period, detail::awaitable_argument Awaitable>
auto timeout(std::chrono::duration<Rep, Period> limit, WEFT_ELIDABLE_ARGUMENT Awaitable&& work) {
  return detail::timed<await_result<Awaitable>, detail::may_be_a_case<Awaitable>>{
      detail::saturated(limit), detail::as_task(std::forward<Awaitable>(work))};
}
template <int = 0>
void timeout(detail::whatever, detail::refused<>);
template <class Rep, class Period>
auto timeout(std::chrono::duration<Rep, Period> limit) noexcept {
  return detail::make_adaptor<detail::timeout_kind>(detail::saturated(limit));
}

/// How often, and after which delays, something is tried again. What makes no sense (a delay or factor below zero, a jitter
/// that is not from 0 to 1, no number) ends the program with a sentence where it is given to retry.
struct retry_policy {
  std::size_t attempts = 3;                                  ///< in all; at least one is made
  detail::time_span delay = std::chrono::milliseconds{100};  ///< before the second
  double factor = 2;                                         ///< by which it grows each time
  detail::time_span max_delay = std::chrono::seconds{30};    ///< and up to here
  double jitter = 0.5;     ///< up to this part of each delay is left out, at random: 0 none, 1 all of it
  std::uint64_t seed = 0;  ///< of the random numbers; 0: another one each time
  bool (*worth_it)(const std::exception_ptr&) = nullptr;  ///< whether to try again after this failure; null: always
};

/// Calls `f` and awaits what it gives, again and again while that fails, as `policy` says. `f | retry(policy)` is the same.
///
///     auto page = co_await w::retry({.attempts = 5, .delay = 10ms}, fetch_page);
///
/// Suspends  as what `f` gives, and for the delays, by the clock of the environment.
/// Cancel    ends the attempt, or the delay. A stop is no failure: nothing is tried again.
/// Fails     throws the failure of the last attempt.
/// Lifetime  `f` is moved into the frame.
template <detail::attempt F>
WEFT_COROUTINE_TAKES_OVER auto retry(retry_policy policy, F&& f);

// ---- implementation -----------------------------------------------------------------------------------------------------

namespace detail {

void expect_sense(const retry_policy& policy) noexcept;

/// The delays of one retry.
class back_off {
 public:
  explicit back_off(const retry_policy& policy) noexcept;

  /// Whether there is another attempt after this failure.
  bool again(const std::exception_ptr& failure);
  clock::duration next() noexcept;

 private:
  retry_policy policy_;
  std::uint64_t random_;
  double delay_;  // in ticks
  std::size_t made_ = 0;
};

template <class F>
task<outcome_of_call<F&>> retry_in_task(retry_policy policy, F f) {
  back_off delays{policy};
  for (;;) {
    try {
      auto&& attempt = call(f);
      co_return co_await std::forward<decltype(attempt)>(attempt);
    } catch (...) {  // thrown on, unless there is another attempt
      if (!delays.again(std::current_exception())) throw;
    }
    co_await sleep_for(delays.next());
  }
}

struct retry_stage {
  retry_policy policy;
  template <attempt F>
  WEFT_COROUTINE_TAKES_OVER friend auto operator|(F&& f, retry_stage self) {
    WEFT_EXPECTS_NO_DOOMED_TEMPORARY(F);
    return retry_in_task<std::decay_t<F>>(self.policy, std::forward<F>(f));
  }
};

}  // namespace detail

template <detail::attempt F>
WEFT_COROUTINE_TAKES_OVER auto retry(retry_policy policy, F&& f) {
  WEFT_EXPECTS_NO_DOOMED_TEMPORARY(F);
  detail::expect_sense(policy);
  return detail::retry_in_task<std::decay_t<F>>(policy, std::forward<F>(f));
}
[[nodiscard("an adaptor stands behind a function: fetch | retry(policy)")]] inline detail::retry_stage retry(
    retry_policy policy) noexcept {
  detail::expect_sense(policy);
  return {policy};
}

}  // namespace weft

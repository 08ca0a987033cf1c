// Limits of time: timeout; and repeated attempts: retry.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <source_location>
#include <type_traits>
#include <utility>
#include <weft/clock.hpp>
#include <weft/detail/base/duration.hpp>
#include <weft/detail/base/forward.hpp>
#include <weft/detail/join/timed.hpp>
#include <weft/detail/task/pipe.hpp>
#include <weft/task.hpp>

namespace weft {

/// Awaits `work`, and stops it when it takes longer than `limit`. Gives its value. `t | timeout(5s)` is the same.
///
///     auto reply = co_await w::timeout(200ms, ask(server));
///
/// Suspends  until `work` has ended, also where it ignores its stop.
/// Cancel    stops `work`. If that ends stopped, so does this, also if the time was over before. When the time is over,
///           why_stopped() in `work` says so, with `where`.
/// Fails     with errc::timed_out if `work` ended stopped because of the limit, and this task was not told to stop. If `work`
///           gives a value, or throws, in spite of its stop, so does this; a scope whose forks were stopped gives no value.
///           With a `limit` of zero, `work` fails at its first wait.
/// Cost      a child as of when_all, and a reading of the clock (23 ns); where `work` waits, a timer. For a `receive` on a
///           worker of a pool that is some 60 ns if there is a value at once, and 75 ns if it waits.
template <class Rep, class Period, detail::awaitable_argument Awaitable>
auto timeout(std::chrono::duration<Rep, Period> limit, WEFT_ELIDABLE_ARGUMENT Awaitable&& work,
             std::source_location where = std::source_location::current()) {
  return detail::timed<await_result<Awaitable>, detail::may_be_a_case<Awaitable>>{
      {detail::saturated(limit), where}, detail::as_task(std::forward<Awaitable>(work))};
}
template <int = 0>
void timeout(detail::whatever, detail::refused<>);
template <int = 0>
detail::void_is_no_awaitable timeout(detail::given<detail::time_span>, ...);
template <class Rep, class Period>
auto timeout(std::chrono::duration<Rep, Period> limit,
             std::source_location where = std::source_location::current()) noexcept {
  return detail::make_adaptor<detail::timeout_kind>(detail::time_limit{detail::saturated(limit), where});
}

/// How often, and after which delays, retry() tries again. A negative delay or factor, a jitter outside of 0 to 1, or NaN ends
/// the program with a sentence when it is passed to retry().
struct retry_policy {
  std::size_t attempts = 3;                                  ///< how many attempts in all; at least one is made
  detail::time_span delay = std::chrono::milliseconds{100};  ///< before the second attempt
  double factor = 2;                                         ///< the delay is multiplied by it after each attempt
  detail::time_span max_delay = std::chrono::seconds{30};    ///< the longest delay
  double jitter = 0.5;  ///< each delay is shortened at random by up to this part of it: 0 not at all, 1 down to nothing
  std::uint64_t seed = 0;  ///< of the random numbers; 0: a different one for each retry()
  bool (*worth_it)(const std::exception_ptr&) = nullptr;  ///< whether to try again after this failure; null: always
};

/// Awaits `f()`, and again as long as that fails and `policy` allows it. `f | retry(policy)` is the same.
///
///     auto page = co_await w::retry({.attempts = 5, .delay = 10ms}, fetch_page);
///
/// Suspends  where `f()` does, and for the delays, by the clock of the environment.
/// Cancel    ends the attempt, or the delay. A stop is not a failure, so nothing is tried again.
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

// Against time: timeout and retry. Part of combine.hpp.
//
// A timeout is a group of one child, which a timer may decide. The timer is armed only where the child waits, so an
// operation that is ready at once pays for one look at the clock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <tuple>
#include <type_traits>
#include <utility>
#include <weft/clock.hpp>
#include <weft/detail/base/forward.hpp>
#include <weft/detail/join/group.hpp>
#include <weft/detail/task/pipe.hpp>
#include <weft/task.hpp>

namespace weft {

namespace detail {

[[noreturn]] void throw_timed_out(clock::duration limit);

template <class T>
class timed_awaiter : public tuple_group<T>, timer {
 public:
  timed_awaiter(clock::duration limit, std::tuple<task<T>>&& work) noexcept
      : tuple_group<T>{std::move(work), &kind}, timer{over}, limit_{limit} {}
  ~timed_awaiter() { disarm(); }

  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> caller) noexcept {
    root& self = suspending(caller);
    clock_ = &clock_of(self);
    if (limit_ > clock::duration::zero()) end_ = later(clock_->now(), limit_);
    this->start(self);
  }
  T await_resume() {
    disarm();
    outcome<T>& slot = std::get<0>(this->slots_);
    if (slot.is_empty()) throw_timed_out(limit_);
    return slot.take();
  }

 private:
  static void about_to_wait(group& self) noexcept {
    auto& mine = static_cast<timed_awaiter&>(self);
    if (mine.limit_ <= clock::duration::zero()) {
      mine.decide();
      return;
    }
    mine.armed_ = true;
    mine.clock_->arm(mine, mine.end_);
  }
  static void over(timer& self) noexcept { static_cast<timed_awaiter&>(self).decide(); }
  static constexpr group::deciding kind{nullptr, about_to_wait};

  // From here on `over` does not run, unless it is what calls this, and touches nothing more.
  void disarm() noexcept {
    if (std::exchange(armed_, false)) clock_->cancel(*this);
  }

  clock::duration limit_;
  clock::time_point end_{};
  clock* clock_ = nullptr;
  bool armed_ = false;  // was
};

/// For a select, which refuses one that limits what would be a case by itself.
template <bool>
struct limits {};
template <>
struct limits<true> {
  using limits_a_case = void;
};
template <class Awaitable>
inline constexpr bool may_be_a_case = requires { typename std::remove_cvref_t<Awaitable>::may_be_a_case; };

template <class T, bool of_a_case = false>
class [[nodiscard("timeout does nothing until it is awaited")]] WEFT_ELIDABLE timed : public knows_roots,
                                                                                      public limits<of_a_case> {
 public:
  timed(clock::duration limit, task<T>&& work) noexcept : limit_{limit}, work_{std::move(work)} {}
  timed_awaiter<T> operator co_await() && noexcept { return {limit_, std::move(work_)}; }

 private:
  clock::duration limit_;
  std::tuple<task<T>> work_;
};

struct timeout_kind {
  template <class Awaitable, class>
  static auto around(Awaitable&& work, clock::duration limit) {
    return timed<await_result<Awaitable>, may_be_a_case<Awaitable>>{limit, as_task(std::forward<Awaitable>(work))};
  }
};

}  // namespace detail

/// Awaits `work`, and stops it when that takes longer than `limit`. Gives what it gives. `t | timeout(5s)` is the same.
///
///     auto reply = co_await w::timeout(200ms, ask(server));
///
/// Suspends  until `work` has ended: one that ignores its stop is waited for.
/// Cancel    a stop goes to `work`. If that ends stopped, so does this, also where the time was over before.
/// Fails     errc::timed_out, if `work` was stopped because of the time, and this task was not told to stop. If it has a value
///           all the same, that is given, and what it throws is thrown; a scope whose forks were stopped has none. A `limit` of
///           zero gives it no time to wait.
/// Cost      a child as of when_all; where it waits, a timer.
template <class Rep, class Period, awaitable Awaitable>
auto timeout(std::chrono::duration<Rep, Period> limit, WEFT_ELIDABLE_ARGUMENT Awaitable&& work) {
  return detail::timed<await_result<Awaitable>, detail::may_be_a_case<Awaitable>>{
      detail::saturated(limit), detail::as_task(std::forward<Awaitable>(work))};
}
template <class Rep, class Period>
auto timeout(std::chrono::duration<Rep, Period> limit) noexcept {
  return detail::make_adaptor<detail::timeout_kind>(detail::saturated(limit));
}

// ---- retry ----------------------------------------------------------------------------------------------------------

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

template <class F>
concept attempt = !weft::awaitable<F> && std::is_invocable_v<std::decay_t<F>&>;

struct retry_stage {
  retry_policy policy;
  template <attempt F>
  WEFT_COROUTINE_TAKES_OVER friend auto operator|(F&& f, retry_stage self) {
    WEFT_EXPECTS_NO_DOOMED_TEMPORARY(F);
    return retry_in_task<std::decay_t<F>>(self.policy, std::forward<F>(f));
  }
};

}  // namespace detail

/// Calls `f` and awaits what it gives, again and again while that fails, as `policy` says. `f | retry(policy)` is the same.
///
///     auto page = co_await w::retry({.attempts = 5, .delay = 10ms}, fetch_page);
///
/// Suspends  as what `f` gives, and for the delays, by the clock of the environment.
/// Cancel    ends the attempt, or the delay. A stop is no failure: nothing is tried again.
/// Fails     throws the failure of the last attempt.
/// Lifetime  `f` is moved into the frame.
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

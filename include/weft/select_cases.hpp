// Cases of a select: sends, receives, times, stops, and `otherwise`. Other awaitables are in select_on.hpp, cases that may be
// missing in select_holes.hpp. Part of select.hpp.
//
//     auto got = co_await w::select(w::on_receive(orders), w::on_send(log, line), w::on_stop(closing.token()), w::after(5ms));
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>
#include <weft/broadcast.hpp>
#include <weft/channel.hpp>
#include <weft/clock.hpp>
#include <weft/detail/base/duration.hpp>
#include <weft/detail/channel/select_cases.hpp>
#include <weft/detail/core/root.hpp>
#include <weft/stop.hpp>

namespace weft {

template <class T>
class receive_case;
template <class T>
class send_case;
class after_case;  // NOLINT(cppcoreguidelines-virtual-class-destructor): it is final
class stop_case;   // NOLINT(cppcoreguidelines-virtual-class-destructor): it is final

/// A receive as a case. It gives std::optional<T>: std::nullopt once the channel is closed and empty.
///
///     auto got = co_await select(on_receive(orders), on_receive(questions));
///
/// Suspends  until there is a value, or the channel is closed: the case is ready then.
/// Cancel    if another case is chosen, or a stop comes, no value has been taken.
/// Lifetime  the channel outlives the select.
/// Cost      no allocation: its place in the line is in the select.
template <class T>
receive_case<T> on_receive(channel<T>& from) noexcept;
/// The same for a receiver of a broadcast or a watch.
///
/// Fails     if chosen, with receiver_too_slow, of a broadcast with slow_receiver::end.
/// Lifetime  the receiver outlives the select, and is neither moved nor used otherwise meanwhile.
template <class Source>
detail::subscriber_case<Source> on_receive(receiver_of<Source>& by) noexcept;
/// A send as a case. It gives std::monostate.
///
///     auto got = co_await select(on_send(results, std::move(mine)), after(5ms));
///
/// Suspends  until there is room or a receiver, or the channel is closed: the case is ready then.
/// Cancel    if another case is chosen, or a stop comes, nothing was sent. The value was moved into the case, and is destroyed
///           with the select: pass a copy if you still need it.
/// Fails     if chosen, with channel_closed<T>, which has the value, where the channel is closed; of an unbounded one also with
///           std::bad_alloc.
/// Lifetime  the channel outlives the select.
/// Cost      no allocation, but for the ring of an unbounded channel when it doubles.
template <class T, class U = T>
  requires std::is_constructible_v<T, U&&>
send_case<T> on_send(channel<T>& to, U&& value);
/// A time as a case, by the clock of the environment. It gives std::monostate.
///
/// Suspends  until `d` has passed since its select began to wait, not since the case was made. Zero or less is ready at once.
///           Beside `otherwise`, with which a select never waits, a longer time is never ready.
/// Cancel    cancels the timer, also if another case is chosen.
/// Cost      no allocation. The timer is armed only if nothing is ready at once.
template <class Rep, class Period>
after_case after(std::chrono::duration<Rep, Period> d) noexcept;
/// A time point as a case: as after(), but it does not start again with each select. It gives std::monostate.
///
///     auto tick = current_clock().now() + 10ms;
///     for (;;) {
///       auto got = co_await select(on_receive(orders), at(tick));
///       if (got.index == 1) tick += 10ms, each_ten_milliseconds();
///     }
///
/// Suspends  until that time; if it has passed, the case is ready at once.
after_case at(detail::time_mark when) noexcept;
/// A stop as a case, by a token that is not the task's own (a stop of the task itself ends it wherever it waits). It gives
/// std::monostate.
///
///     auto got = co_await select(on_receive(orders), on_stop(closing));  // `closing` is a stop_token
///
/// Suspends  until the token's source is told to stop; from then on the case is always ready. A token without a source is never
///           ready.
/// Cancel    removes its callback, also if another case is chosen.
/// Lifetime  the source outlives the select.
/// Cost      no allocation. The callback is registered only if nothing is ready at once.
stop_case on_stop(stop_token token) noexcept;
/// The case that is chosen if no other one is ready at once. It gives std::monostate.
///
/// Suspends  never: a select with it does not wait.
/// Cost      no lock, if no channel seems to be ready.
inline constexpr struct {
} otherwise{};

// ---- the cases ----------------------------------------------------------------------------------------------------------

/// A receive as a case of a select, which gives std::optional<T>: see channel::receive.
template <class T>
class receive_case {
 public:
  using result_type = std::optional<T>;
  using state = detail::receive_state<T>;
  explicit receive_case(channel<T>& from) noexcept : from_{&from} {}  ///< as on_receive(from)

 private:
  friend state;
  channel<T>* from_;
};

/// A send as a case of a select: see channel::send. The value stays where it is until it is sent.
template <class T>
class send_case {
 public:
  using result_type = std::monostate;
  using state = detail::send_state<T>;
  send_case(channel<T>& to, T&& value) noexcept : to_{&to}, value_(std::move(value)) {}  ///< as on_send(to, value)

 private:
  friend state;
  channel<T>* to_;
  T value_;
};

/// A time as a case of a select: see after() and at().
class after_case final : public detail::happening_case, timer {
 public:
  using result_type = std::monostate;
  using state = after_case;
  static const detail::case_layout seen;
  /// From where the select is awaited on.
  explicit after_case(clock::duration d) noexcept : happening_case{passed_}, timer{fire_now}, for_{d} {}
  /// A time of the clock of the task that selects.
  explicit after_case(clock::time_point until) noexcept
      : happening_case{passed_}, timer{fire_now}, until_{until}, is_absolute_{true} {}
  after_case(const after_case& other) noexcept  // before it is awaited
      : happening_case{passed_},
        timer{fire_now},
        for_{other.for_},
        until_{other.until_},
        is_absolute_{other.is_absolute_} {}

  bool may_be_ready() const noexcept {
    return passed_.seems_happened() ||
           (is_absolute_ ? until_ <= current_clock().now() : for_ <= clock::duration::zero());
  }
  bool try_now() noexcept { return may_be_ready(); }
  static constexpr bool begins = true;
  void begin(detail::root& self) noexcept override;
  void leave(bool was_in_line) noexcept override;
  result_type take() noexcept { return {}; }

 private:
  void tell(detail::wait_subjects& into) const noexcept override { into.add("clock", clock_); }
  static void fire_now(timer& self) noexcept;

  clock::duration for_{};
  clock::time_point until_{};
  bool is_absolute_ = false;
  clock* clock_ = nullptr;
  detail::happening passed_;
};

/// A stop as a case of a select: see on_stop().
class stop_case final : public detail::happening_case {
 public:
  using result_type = std::monostate;
  using state = stop_case;
  static const detail::case_layout seen;
  explicit stop_case(stop_token of) noexcept : happening_case{requested_}, of_{of} {}  ///< as on_stop(of)
  stop_case(const stop_case& other) noexcept : stop_case{other.of_} {}                 // before it is awaited

  bool may_be_ready() const noexcept { return of_.stop_requested(); }
  bool try_now() const noexcept { return of_.stop_requested(); }
  static constexpr bool begins = true;
  void begin(detail::root& self) noexcept override;
  void leave(bool was_in_line) noexcept override;
  result_type take() noexcept { return {}; }

 private:
  struct says_so {
    detail::happening& what;
    void operator()() const noexcept { what.happen(); }  // both may be gone after this line
  };
  void tell(detail::wait_subjects& into) const noexcept override { into.add("stop of others", nullptr); }

  stop_token of_;
  detail::happening requested_;
  std::optional<stop_callback<says_so>> callback_;  // where it waits
};

WEFT_CASE_LAYOUT(after_case, of("clock", offsetof(after_case, clock_)));
WEFT_CASE_LAYOUT(stop_case, of_nothing("stop of others"));

template <class T>
receive_case<T> on_receive(channel<T>& from) noexcept {
  return receive_case<T>{from};
}
template <class Source>
detail::subscriber_case<Source> on_receive(receiver_of<Source>& by) noexcept {
  return detail::subscriber_case<Source>{by};
}
template <class T, class U>
  requires std::is_constructible_v<T, U&&>
send_case<T> on_send(channel<T>& to, U&& value) {
  return send_case<T>{to, T(std::forward<U>(value))};
}
template <class Rep, class Period>
after_case after(std::chrono::duration<Rep, Period> d) noexcept {
  return after_case{detail::saturated(d)};
}
inline after_case at(detail::time_mark when) noexcept { return after_case{when}; }
inline stop_case on_stop(stop_token token) noexcept { return stop_case{token}; }

}  // namespace weft

// What a select chooses between: a send, a receive, a time, a stop, or nothing at all. select_on.hpp has what else can be
// awaited, select_holes.hpp cases that may be missing. Part of select.hpp.
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

/// A receive as a case. It gives std::optional<T>: nothing, once the channel is closed and drained.
///
///     auto got = co_await select(on_receive(orders), on_receive(questions));
///
/// Suspends  until there is a value, or the channel is closed; then the case is ready.
/// Cancel    leaves the line. Where another case is chosen, or a stop comes, no value has been taken.
/// Lifetime  the channel outlives the select.
/// Cost      no allocation: its place in the line is in the select.
template <class T>
receive_case<T> on_receive(channel<T>& from) noexcept;
/// The same of a broadcast or a watch.
///
/// Fails     receiver_too_slow, if chosen, of a broadcast with slow_receiver::end.
/// Lifetime  the receiver stays where it is, and outlives the select; nobody else receives by it meanwhile.
template <class Source>
detail::subscriber_case<Source> on_receive(receiver_of<Source>& by) noexcept;
/// A send as a case. It gives std::monostate.
///
///     auto got = co_await select(on_send(results, std::move(mine)), after(5ms));
///
/// Suspends  until there is room or a receiver, or the channel is closed; then the case is ready.
/// Cancel    leaves the line. Where another case is chosen, or a stop comes, nothing was sent: the value, which was moved
///           into the case here, ends with the select. Who needs it then sends a copy.
/// Fails     channel_closed<T>, which has the value, if chosen when the channel is closed; std::bad_alloc where unbounded.
/// Lifetime  the channel outlives the select.
/// Cost      no allocation, but for the ring of an unbounded channel when it doubles.
template <class T, class U = T>
  requires std::is_constructible_v<T, U&&>
send_case<T> on_send(channel<T>& to, U&& value);
/// A time as a case, by the clock of the environment. It gives std::monostate.
///
/// Suspends  until `d` has passed since its select began to wait, not since it was made. Zero or less is ready at once; beside
///           `otherwise`, which never waits, more than that never is.
/// Cancel    takes the timer back, also where another case is chosen.
/// Cost      no allocation. The timer is armed only if nothing is ready at once.
template <class Rep, class Period>
after_case after(std::chrono::duration<Rep, Period> d) noexcept;
/// A time point as a case: as after(), but that it does not begin anew with each select. It gives std::monostate.
///
///     auto tick = current_clock().now() + 10ms;
///     for (;;) {
///       auto got = co_await select(on_receive(orders), at(tick));
///       if (got.index == 1) tick += 10ms, each_ten_milliseconds();
///     }
///
/// Suspends  until then; where it has passed, it is ready at once.
after_case at(detail::time_mark when) noexcept;
/// A stop as a case: of a token that is not the task's own, which ends it wherever it waits. It gives std::monostate.
///
///     auto got = co_await select(on_receive(orders), on_stop(closing));  // `closing` is a stop_token
///
/// Suspends  until the token's source is told to stop. Once it was, always ready; of a token without a source, never.
/// Cancel    takes its callback back, also where another case is chosen.
/// Lifetime  the source outlives the select.
/// Cost      no allocation. The callback is registered only if nothing is ready at once.
stop_case on_stop(stop_token token) noexcept;
/// As a case: what is done where no other one is ready at one moment. It gives std::monostate.
///
/// Suspends  never, nor does its select.
/// Cost      no lock, where no channel seems to be ready.
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

/// A time after which a select goes on with this.
class after_case final : public detail::happening_case, timer {
 public:
  using result_type = std::monostate;
  using state = after_case;
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

/// A stop of others, with which a select goes on: see on_stop().
class stop_case final : public detail::happening_case {
 public:
  using result_type = std::monostate;
  using state = stop_case;
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

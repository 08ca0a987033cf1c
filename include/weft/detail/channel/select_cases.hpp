// What a select chooses between: a send, a receive, a time, a stop, or nothing at all; channel/select_on.hpp has what else can
// be awaited. Part of select.hpp; how it works is in select_core.hpp. A case is a description; what it waits with is its
// `state`, which is made in the awaiter, and most of that only where it waits.
//
// Long because each kind of case is some forty lines of one shape, and a reader compares them.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>
#include <weft/broadcast.hpp>
#include <weft/clock.hpp>
#include <weft/detail/base/peeked.hpp>
#include <weft/detail/channel/select_wait.hpp>
#include <weft/detail/core/root.hpp>
#include <weft/detail/core/waiter.hpp>
#include <weft/detail/join/group.hpp>
#include <weft/detail/sync/learning_lock.hpp>
#include <weft/stop.hpp>

namespace weft {

namespace detail {

/// What a send and a receive have in common as cases of a select: a place in a line of a channel.
class channel_case : public select_case {
 public:
  learning_lock& its_lock() noexcept { return at_.lock; }
  void finish() noexcept {
    if (to_wake_ != nullptr) to_wake_->wake();
  }
  void enter(const waiter& parked) noexcept final {
    line_->push(*node_);
    ++at_.waits;
    node_->share(parked);
  }
  channel_waiter* place_at(const channel_core& one) noexcept final { return &at_ == &one ? node_ : nullptr; }
  void leave(bool was_in_line) noexcept final {
    if (was_in_line) at_.leave(*node_, *line_);
  }

 protected:
  explicit channel_case(channel_core& at) noexcept : at_{at} {}
  ~channel_case() = default;

  void prepare(select_wait& of, std::size_t index, channel_waiter& node, waiter_line& line) noexcept {
    node.select = &of;
    node.index = index;
    node_ = &node;
    line_ = &line;
  }

  channel_core& at_;
  channel_waiter* to_wake_;  // the other side of what was done at once

 private:
  void tell(wait_subjects& into) const noexcept final {
    into.add(line_ == &at_.senders ? "channel, to send" : "channel, to receive", &at_);
  }

  channel_waiter* node_;  // never asked to leave: the select's own wait is
  waiter_line* line_;
};

template <class T>
class receive_state final : public channel_case {
 public:
  explicit receive_state(receive_case<T>&& from) noexcept : receive_state{*from.from_} {}
  explicit receive_state(channel<T>& from) noexcept : channel_case{from} {}
  receive_state(const receive_state& other) noexcept : receive_state{other.from()} {}  // before it is awaited

  bool may_be_ready() const noexcept { return from().may_receive(); }
  std::uint32_t changes() const noexcept { return at_.changes.peek(); }
  bool try_now() noexcept {
    to_wake_ = nullptr;
    return from().try_receive_now(value_, to_wake_) != channel<T>::outcome::must_wait;
  }
  void prepare(select_wait& of, std::size_t index, root&) noexcept {
    channel_case::prepare(of, index, node_.emplace(waits_by_select, value_), at_.receivers);
  }
  std::optional<T> take() noexcept { return std::move(value_); }

 private:
  channel<T>& from() const noexcept { return static_cast<channel<T>&>(at_); }

  std::optional<T> value_;
  std::optional<typename channel<T>::receive_node> node_;  // where it waits
};

template <class T>
class send_state final : public channel_case {
 public:
  explicit send_state(send_case<T>&& from) noexcept : send_state{*from.to_, std::move(from.value_)} {}
  send_state(channel<T>& to, T&& value) noexcept : channel_case{to}, value_(std::move(value)) {}
  send_state(send_state&& other) noexcept : send_state{other.to(), std::move(other.value_)} {}  // before it is awaited

  bool may_be_ready() const noexcept { return to().may_send(); }
  std::uint32_t changes() const noexcept { return at_.changes.peek(); }
  bool try_now() noexcept {
    to_wake_ = nullptr;
    no_memory_ = !to().closed && !to().make_room();  // perhaps under the locks of all: rare, as the ring doubles
    if (no_memory_) return true;
    const auto how = to().try_send_now(value_, to_wake_);
    closed_ = how == channel<T>::outcome::closed;
    return how != channel<T>::outcome::must_wait;
  }
  void prepare(select_wait& of, std::size_t index, root&) noexcept {
    channel_case::prepare(of, index, node_.emplace(waits_by_select, value_), at_.senders);
  }
  std::monostate take() {
    if (closed_ || (node_ && node_->closed)) throw channel_closed<T>{std::move(value_)};
    if (no_memory_) throw std::bad_alloc{};
    return {};
  }

 private:
  channel<T>& to() const noexcept { return static_cast<channel<T>&>(at_); }

  T value_;
  bool closed_ = false;
  bool no_memory_ = false;
  std::optional<typename channel<T>::send_node> node_;  // where it waits
};

}  // namespace detail

/// A receive as a case of a select, which gives std::optional<T>: see channel::receive.
template <class T>
class receive_case {
 public:
  using result_type = std::optional<T>;
  using state = detail::receive_state<T>;
  explicit receive_case(channel<T>& from) noexcept : from_{&from} {}

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
  send_case(channel<T>& to, T&& value) noexcept : to_{&to}, value_(std::move(value)) {}

 private:
  friend state;
  channel<T>* to_;
  T value_;
};

namespace detail {

template <class Source>
class subscriber_case final : public select_case {
 public:
  using result_type = std::optional<typename Source::value_type>;
  using state = subscriber_case;
  explicit subscriber_case(receiver_of<Source>& by) noexcept : by_{by} {
    WEFT_EXPECTS(by.from_ != nullptr, "a receiver that has left was told to receive");
  }
  subscriber_case(const subscriber_case& other) noexcept : subscriber_case{other.by_} {}  // before it is awaited

  bool may_be_ready() const noexcept { return true; }  // it takes the lock to know
  std::uint32_t changes() const noexcept { return 0; }
  learning_lock& its_lock() noexcept { return by_.from_->lock; }
  bool try_now() noexcept {
    const receipt how = by_.from_->try_receive_now(by_.at_, value_, through_.emplace());
    too_slow_ = how == receipt::too_slow;
    return how != receipt::must_wait;
  }
  void finish() noexcept { through_.reset(); }
  void prepare(select_wait& of, std::size_t index, root&) noexcept {
    node_.select = &of;
    node_.index = index;
    subscriber_awaiter<Source>::expect_one(by_.at_);
  }
  void enter(const waiter& parked) noexcept override {
    by_.at_.awaited = true;
    by_.from_->line().push(node_);
    ++by_.from_->waits;
    node_.share(parked);
  }
  channel_waiter* place_at(const channel_core& one) noexcept override { return by_.from_ == &one ? &node_ : nullptr; }
  void leave(bool was_in_line) noexcept override {
    if (was_in_line) by_.from_->channel_core::leave(node_, by_.from_->line());
    by_.at_.awaited = false;  // the sleeper's, or of who has claimed its wait
  }
  result_type take() {
    if (too_slow_) throw receiver_too_slow{};
    return std::move(value_);
  }

 private:
  void tell(wait_subjects& into) const noexcept override { into.add(Source::to_receive, by_.from_); }

  receiver_of<Source>& by_;
  std::optional<typename Source::value_type> value_;
  std::optional<let_through> through_;  // those that wait to send, and have room now
  bool too_slow_ = false;
  subscriber<Source> node_{waits_by_select, by_.at_, value_};
};

/// Something that happens once, outside of any channel, and for which one select waits.
class happening {
 public:
  learning_lock& lock() noexcept { return lock_; }
  bool happened() const noexcept { return happened_; }  // under the lock
  bool seems_happened() const noexcept { return happened_.peek(); }
  void enter(channel_waiter& one) noexcept { waits_ = &one; }  // under the lock
  void leave() noexcept;
  /// `stopped`: what the select waits for has ended so, and so does the select. Both may be gone when this returns.
  void happen(wake_up how = wake_up::completed) noexcept;

 private:
  learning_lock lock_;  // of the next two
  peeked<bool> happened_ = false;
  channel_waiter* waits_ = nullptr;
};

/// Waits for one.
class happening_case : public select_case {
 public:
  bool may_be_ready() const noexcept { return what_.seems_happened(); }
  std::uint32_t changes() const noexcept { return 0; }  // what has happened stays so
  learning_lock& its_lock() noexcept { return what_.lock(); }
  bool try_now() noexcept { return what_.happened(); }
  void finish() noexcept {}
  void prepare(select_wait& of, std::size_t index, root&) noexcept {
    node_.select = &of;
    node_.index = index;
  }
  void enter(const waiter& parked) noexcept final {
    what_.enter(node_);
    node_.share(parked);
  }
  void leave(bool) noexcept override { what_.leave(); }

 protected:
  explicit happening_case(happening& what) noexcept : what_{what} {}
  ~happening_case() = default;

  /// And that whoever made it happen has let go of it, or will have woken the select.
  bool has_happened() const noexcept {
    const std::lock_guard guard{what_.lock()};
    return what_.happened();
  }

  void tell(wait_subjects& into) const noexcept override { into.add("work beside a select", &what_); }

 private:
  struct node final : channel_waiter {
    node() noexcept : channel_waiter{waits_by_select} {}
  };
  happening& what_;
  node node_;
};

}  // namespace detail

/// A time after which a select goes on with this.
class after_case final : public detail::happening_case, timer {
 public:
  using result_type = std::monostate;
  using state = after_case;
  explicit after_case(clock::duration d) noexcept : happening_case{passed_}, timer{fire_now}, for_{d} {}
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
  explicit stop_case(stop_token of) noexcept : happening_case{requested_}, of_{of} {}
  stop_case(const stop_case& other) noexcept : stop_case{other.of_} {}  // before it is awaited

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

namespace detail {

/// What a select does if nothing is ready.
struct otherwise_case {
  using result_type = std::monostate;
  using state = otherwise_case;
  static constexpr bool begins = false;
  static constexpr bool may_need_no_lock = false;
  static constexpr bool ended_stopped() noexcept { return false; }
  bool may_be_ready() const noexcept { return false; }
  std::uint32_t changes() const noexcept { return 0; }
  result_type take() noexcept { return {}; }
};

}  // namespace detail

/// A receive as a case. It gives std::optional<T>: nothing, once the channel is closed and drained.
///
///     auto got = co_await select(on_receive(orders), on_receive(questions));
///
/// Suspends  until there is a value, or the channel is closed; then the case is ready.
/// Cancel    leaves the line. Where another case is chosen, or a stop comes, no value has been taken.
/// Lifetime  the channel outlives the select.
/// Cost      no allocation: its place in the line is in the select.
template <class T>
receive_case<T> on_receive(channel<T>& from) noexcept {
  return receive_case<T>{from};
}
/// The same of a broadcast or a watch.
///
/// Fails     receiver_too_slow, if chosen, of a broadcast with slow_receiver::end.
/// Lifetime  the receiver stays where it is, and outlives the select; nobody else receives by it meanwhile.
template <class Source>
auto on_receive(receiver_of<Source>& by) noexcept {
  return detail::subscriber_case<Source>{by};
}
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
send_case<T> on_send(channel<T>& to, U&& value) {
  return send_case<T>{to, T(std::forward<U>(value))};
}
/// A time as a case, by the clock of the environment. It gives std::monostate.
///
/// Suspends  until `d` has passed since its select began to wait, not since it was made. Zero or less is ready at once; beside
///           `otherwise`, which never waits, more than that never is.
/// Cancel    takes the timer back, also where another case is chosen.
/// Cost      no allocation. The timer is armed only if nothing is ready at once.
template <class Rep, class Period>
after_case after(std::chrono::duration<Rep, Period> d) noexcept {
  return after_case{detail::saturated(d)};
}
/// A time point as a case: as after(), but that it does not begin anew with each select. It gives std::monostate.
///
///     auto tick = current_clock().now() + 10ms;
///     for (;;) {
///       auto got = co_await select(on_receive(orders), at(tick));
///       if (got.index == 1) tick += 10ms, each_ten_milliseconds();
///     }
///
/// Suspends  until then; where it has passed, it is ready at once.
inline after_case at(detail::time_mark when) noexcept { return after_case{when}; }
/// A stop as a case: of a token that is not the task's own, which ends it wherever it waits. It gives std::monostate.
///
///     auto got = co_await select(on_receive(orders), on_stop(closing));  // `closing` is a stop_token
///
/// Suspends  until the token's source is told to stop. Once it was, always ready; of a token without a source, never.
/// Cancel    takes its callback back, also where another case is chosen.
/// Lifetime  the source outlives the select.
/// Cost      no allocation. The callback is registered only if nothing is ready at once.
inline stop_case on_stop(stop_token token) noexcept { return stop_case{token}; }
/// As a case: what is done where no other one is ready at one moment. It gives std::monostate.
///
/// Suspends  never, nor does its select.
/// Cost      no lock, where no channel seems to be ready.
inline constexpr struct {
} otherwise{};

}  // namespace weft

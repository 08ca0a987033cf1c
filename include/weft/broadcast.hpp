// Broadcasts: each value goes to all receivers. Receivers are in receiver_of.hpp; a single value that changes is a watch, in
// watch.hpp.
//
//     w::broadcast<tick> ticks{{.capacity = 64}};
//     auto mine = ticks.subscribe();
//     co_await ticks.send(now);
//     while (auto t = co_await mine.receive()) draw(*t);
//
// A broadcast keeps each value in a ring until all that had subscribed before have received it; each slot counts those that
// have not. Values are numbered, so a receiver's state is the number of its next value. A receiver that waits has received all
// values so far, so a send gives it its copy directly, and keeps the value for the others.
//
// Copies are made under the lock; for a receiver that waits, by the sender. So copies must not throw: for a type that is
// expensive to copy, send a std::shared_ptr<const T>. A value whose last receiver has left, or was too slow, is destroyed under
// the lock, so its destructor must not use the broadcast.
//
// Rejected: copying out of the ring without the lock, under a count of readers for each slot, as tokio does: two atomic
// read-modify-writes more for each value, for types that are better shared.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>
#include <weft/channel.hpp>
#include <weft/detail/base/peeked.hpp>
#include <weft/detail/channel/channel_core.hpp>
#include <weft/detail/channel/ring.hpp>
#include <weft/detail/core/root.hpp>
#include <weft/detail/core/waiter.hpp>
#include <weft/detail/sync/gate.hpp>
#include <weft/receiver_of.hpp>
#include <weft/watch.hpp>

namespace weft {

namespace detail {
template <class T>
class broadcast_send_case;
}  // namespace detail

/// What a send does if the ring is full because a receiver has not received the oldest value.
enum class slow_receiver {
  wait,         ///< waits for the receiver
  drop_oldest,  ///< drops the oldest value; receiver_of::missed counts that
  end,          ///< ends the receiver: its next receive fails with receiver_too_slow
};

/// The options of a broadcast.
struct broadcast_options {
  std::size_t capacity = 16;  ///< how many values it keeps for slow receivers; at least one
  slow_receiver slow = slow_receiver::wait;
};

/// Sends each value to all that have subscribed before. Without subscribers a value is dropped.
///
///     broadcast<tick> ticks{{.capacity = 64, .slow = slow_receiver::drop_oldest}};
///     auto mine = ticks.subscribe();
///     co_await ticks.send(now);
///     while (auto t = co_await mine.receive()) draw(*t);
///
/// Cost  one allocation, for the ring. A send: a copy and a wake-up for each receiver that waits.
template <class T>
class broadcast : detail::channel_core {
  static_assert(std::is_nothrow_copy_constructible_v<T> && std::is_nothrow_move_constructible_v<T> &&
                    !std::is_const_v<T>,
                "a broadcast copies values under its lock, so that must not throw: send a std::shared_ptr<const T>");
  class send_awaiter;
  class sending;

 public:
  using value_type = T;
  using receiver = receiver_of<broadcast>;

  /// Throws std::bad_alloc.
  explicit broadcast(broadcast_options options = {}) : slow_{options.slow} {
    WEFT_EXPECTS(options.capacity != 0, "a broadcast has room for a value at least: {.capacity = 1}");
    values_.move_into(values_.allocate(options.capacity), options.capacity);
  }
  ~broadcast() {
    lock.lock();
    WEFT_EXPECTS(handles_ == 0, "a broadcast was destroyed while a receiver of it is left");
    lock.unlock();
  }

  /// Makes a receiver of all values that are sent from now on.
  receiver subscribe() noexcept {
    lock.lock();
    ++count_;
    ++handles_;
    receiver one{*this, place{first_ + values_.size()}};
    lock.unlock();
    return one;
  }

  /// Sends a value to all receivers. Fails with channel_closed<T>, which has the value, if the broadcast is closed before.
  ///
  /// Suspends  only with slow_receiver::wait, while the ring is full.
  /// Cancel    a stopped send has sent to nobody.
  [[nodiscard("nothing happens until it is awaited")]] sending send(T value) noexcept {
    return sending{*this, std::move(value)};
  }
  /// Sends a value if that is possible without waiting. False: it was not sent, and `value` is unchanged.
  [[nodiscard("it says whether the value was sent")]] bool try_send(T&& value);
  [[nodiscard("it says whether the value was sent")]] bool try_send(const T& value) {
    T copy(value);
    return try_send(std::move(copy));
  }

  /// Closes it: sends, also those that wait, fail with channel_closed<T>; receivers get the values that are left, and then
  /// nothing. A second call does nothing.
  using channel_core::close;
  using channel_core::is_closed;
  /// Counts of waits to send and to receive.
  using channel_core::stats;

  /// How many receivers there are; may have changed when it is returned.
  std::size_t receivers() const noexcept {
    lock.lock();
    const std::size_t count = count_;
    lock.unlock();
    return count;
  }

 private:
  template <class>
  friend class receiver_of;
  template <class>
  friend class detail::subscriber_awaiter;
  template <class>
  friend class detail::subscriber_case;
  template <class>
  friend class detail::broadcast_send_case;
  template <class>
  friend struct detail::subscriber;

  using node = detail::subscriber<broadcast>;
  static constexpr const char* to_receive = "broadcast, to receive";
  using receipt = detail::receipt;
  struct place {
    std::uint64_t next = 0;  // to be received
    std::uint64_t missed = 0;
    bool ended = false;    // it was too slow, and is no receiver any more
    bool awaited = false;  // somebody waits with it. By who does
  };
  struct sender : detail::channel_waiter {
    sender(const detail::wait_type& type, T& from) noexcept : channel_waiter{type}, value{from} {}
    T& value;
  };
  struct slot {
    T value;
    std::size_t left;  // receivers that have not got it
  };
  enum class sent { done, closed, must_wait };

  // All under the lock.
  sent try_send_now(T& value, std::optional<slot>& dropped, detail::let_through& through) noexcept;
  receipt try_receive_now(place& at, std::optional<T>& to, detail::let_through& through) noexcept;
  void deliver(T&& value, detail::let_through& through) noexcept;
  void drop_received(detail::let_through& through) noexcept;
  void forget(place& at, detail::let_through& through) noexcept;
  void drop(place& at, detail::let_through& through) noexcept {
    --handles_;
    forget(at, through);
  }
  detail::waiter_line& line() noexcept { return channel_core::receivers; }
  // Without the lock, for a guess. By who is about to send, and by the receiver whose place that is.
  bool may_send() const noexcept { return slow_ != slow_receiver::wait || !values_.seems_full() || closed.peek(); }
  bool may_receive(const place& at) const noexcept {
    return at.next != first_.peek() + values_.count().peek() || at.ended || closed.peek();
  }

  const slow_receiver slow_;
  detail::ring<slot> values_;
  detail::peeked<std::uint64_t> first_ = 0;  // the number of the oldest in the ring
  std::size_t count_ = 0;                    // receivers that get what is sent
  std::size_t handles_ = 0;                  // the same and those that were too slow
};

// Those that wait are at the end of what was sent: they get a copy now.
template <class T>
void broadcast<T>::deliver(T&& value, detail::let_through& through) noexcept {
  std::size_t left = count_;
  while (auto* one = static_cast<node*>(pop(line()))) {
    one->slot.emplace(std::as_const(value));
    ++one->at.next;
    --left;
    through.push(*one);
  }
  if (left != 0)
    values_.push(slot{std::move(value), left});
  else
    first_ = first_ + 1;  // the ring is empty, since who waits has received all that is in it
}

// What all have received goes, and those that wait to send have room.
template <class T>
void broadcast<T>::drop_received(detail::let_through& through) noexcept {
  while (values_.size() != 0 && values_[0].left == 0) {
    values_.pop();
    first_ = first_ + 1;
  }
  while (!values_.is_full()) {
    auto* one = static_cast<sender*>(pop(senders));
    if (one == nullptr) return;
    deliver(std::move(one->value), through);
    through.push(*one);
  }
}

template <class T>
void broadcast<T>::forget(place& at, detail::let_through& through) noexcept {
  if (std::exchange(at.ended, true)) return;
  --count_;
  const std::uint64_t next = std::max<std::uint64_t>(at.next, first_);
  for (std::size_t i = static_cast<std::size_t>(next - first_); i < values_.size(); ++i) --values_[i].left;
  drop_received(through);
}

template <class T>
auto broadcast<T>::try_send_now(T& value, std::optional<slot>& dropped, detail::let_through& through) noexcept -> sent {
  if (closed) return sent::closed;
  if (values_.is_full()) {
    if (slow_ == slow_receiver::wait) return sent::must_wait;
    dropped.emplace(values_.pop());
    first_ = first_ + 1;
  }
  deliver(std::move(value), through);
  return sent::done;
}

template <class T>
auto broadcast<T>::try_receive_now(place& at, std::optional<T>& to, detail::let_through& through) noexcept -> receipt {
  if (at.ended) return receipt::too_slow;
  if (at.next < first_) {
    at.missed += first_ - at.next;
    at.next = first_;
    if (slow_ == slow_receiver::end) return (forget(at, through), receipt::too_slow);
  }
  const auto index = static_cast<std::size_t>(at.next - first_);
  if (index == values_.size()) return closed ? receipt::over : receipt::must_wait;
  slot& found = values_[index];
  ++at.next;
  if (--found.left != 0) {
    to.emplace(std::as_const(found.value));
  } else {
    to.emplace(std::move(found.value));
    drop_received(through);
  }
  return receipt::done;
}

template <class T>
bool broadcast<T>::try_send(T&& value) {
  detail::let_through through;
  std::optional<slot> dropped;  // destroyed when the lock is free
  lock.lock();
  const sent how = try_send_now(value, dropped, through);
  lock.unlock();
  return how == sent::done;
}

template <class T>
class broadcast<T>::send_awaiter : sender, public detail::gate_awaiter<send_awaiter> {
 public:
  send_awaiter(broadcast& to, T&& value) noexcept : sender{type, value_}, to_{to}, value_(std::move(value)) {}

  bool suspend(detail::root& self) noexcept {
    if (self.sleeper::stop_requested()) return (detail::end_stopped(self), true);
    detail::let_through through;
    std::optional<slot> dropped;
    to_.lock.lock();
    const sent how = to_.try_send_now(value_, dropped, through);
    if (how == sent::must_wait) return (to_.wait(self, *this, to_.senders), true);
    this->closed = how == sent::closed;
    to_.lock.unlock();
    return false;
  }
  // See detail::may_need_no_wait.
  bool seems_ready() const noexcept { return to_.may_send(); }
  bool done_at_once(const detail::root& self) noexcept {
    if (self.sleeper::stop_requested()) return false;
    detail::let_through through;
    std::optional<slot> dropped;
    to_.lock.lock();
    const sent how = to_.try_send_now(value_, dropped, through);
    to_.lock.unlock();
    this->closed = how == sent::closed;
    return how != sent::must_wait;
  }
  void await_resume() {
    if (this->closed) throw channel_closed<T>{std::move(value_)};
  }

 private:
  static detail::on_stop leave(detail::waiter& self) noexcept {
    auto& mine = static_cast<send_awaiter&>(self);
    mine.to_.channel_core::leave(mine, mine.to_.senders);
    return detail::on_stop::left;
  }
  static void tell(const detail::waiter& self, const char* what, detail::wait_subjects& into) noexcept {
    into.add(what, &static_cast<const send_awaiter&>(self).to_);
  }
  static const detail::wait_layout seen;
  static constexpr detail::wait_type type{.leave = leave, .name = "broadcast, to send", .tell = tell, .layout = &seen};

  broadcast& to_;
  T value_;
};
WEFT_LAYOUT_IN(T, broadcast<T>::send_awaiter, stored_at(WEFT_BEHIND_WAITER(send_awaiter, to_)));

template <class T>
class WEFT_TO_BE_AWAITED("nothing is sent until it is awaited") broadcast<T>::sending : public detail::knows_roots {
 public:
  using may_be_a_case = void;
  send_awaiter operator co_await() && noexcept { return send_awaiter{*to_, std::move(value_)}; }
  detail::broadcast_send_case<T> as_case() && noexcept { return {*to_, std::move(value_)}; }

 private:
  friend broadcast;
  sending(broadcast& to, T&& value) noexcept : to_{&to}, value_(std::move(value)) {}
  broadcast* to_;
  T value_;
};

}  // namespace weft

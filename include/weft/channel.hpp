// Channels: queues of values between tasks, fibers and threads. Broadcast, watch and select follow the same rules.
//
// A channel is bounded (a number of values may wait in it), a rendezvous (capacity 0: a send waits until somebody receives) or
// unbounded. Any number may send and receive. Values arrive in the order in which they were sent, and waiters are served in the
// order in which they came. A send that finds a waiting receiver gives it the value directly.
//
// What holds for all of it:
//
//   Suspends   only where the operation can't complete at once; resumes on its own executor.
//   Cancel     a stopped operation leaves the line and has no effect: no value is lost or delivered twice. A value that was
//              delivered before the stop is received. A task that was told to stop ends at the await, also if it need not wait.
//   Deadline   `timeout(5ms, c.receive())`, or `after(5ms)` in a select.
//   Closing    receivers get the values that are left, and then nothing. Senders, also those that wait, fail with errc::closed,
//              and get their values back.
//   Threads    any; on a plain thread, `sync_wait(c.receive())`.
//   Lifetime   a channel outlives those that wait in it: destroyed with a waiter in line, it ends the program with a sentence.
//
// Values may be moved under the channel's lock, so their move must not throw, and must not use the channel.
//
// Long because a send, a receive and what they share with the cases of a select are one protocol.
#pragma once

#include <coroutine>
#include <cstddef>
#include <iterator>
#include <memory>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>
#include <weft/async_generator.hpp>
#include <weft/detail/base/peeked.hpp>
#include <weft/detail/channel/channel_core.hpp>
#include <weft/detail/channel/ring.hpp>
#include <weft/detail/channel/thrown_value.hpp>
#include <weft/detail/core/root.hpp>
#include <weft/detail/core/waiter.hpp>
#include <weft/detail/sync/gate.hpp>
#include <weft/error.hpp>
#include <weft/fiber.hpp>
#include <weft/sync.hpp>
#include <weft/task.hpp>

namespace weft {

template <class T>
class receive_case;
template <class T>
class send_case;
namespace detail {
template <class T>
class receive_state;
template <class T>
class send_state;
}  // namespace detail

/// Thrown by a send to a closed channel. Its code is errc::closed, and it has the value that was not sent.
template <class T>
class channel_closed : public error {
 public:
  /// The value that was not sent.
  explicit channel_closed(T&& value) : error{errc::closed, "send"}, value_(std::move(value)) {}
  T& value() noexcept { return value_.get(); }  ///< to be moved out, and sent elsewhere

 private:
  detail::thrown_value<T> value_;
};

/// The type of `unbounded`: a channel without a capacity, whose senders never wait.
struct unbounded_t {
  explicit unbounded_t() = default;
};
/// `channel<T> queue{unbounded}`.
inline constexpr unbounded_t unbounded{};

/// A queue of values between senders and receivers. What holds for all operations stands at the top of channel.hpp.
///
///     channel<int> numbers{16};
///     co_await numbers.send(7);                     // waits while 16 are there
///     while (auto n = co_await numbers.receive())   // until it is closed and drained
///       use(*n);
///
/// Cost  no allocation but that of its ring buffer: one if it is bounded; an unbounded one doubles its ring when that is full.
template <class T>
class channel : detail::channel_core {
  static_assert(std::is_object_v<T> && !std::is_const_v<T>, "a channel carries values");
  static_assert(std::is_nothrow_move_constructible_v<T>,
                "a channel moves values under its lock, so their move must not throw: send a std::unique_ptr");
  using channel_waiter = detail::channel_waiter;
  struct send_node;
  struct receive_node;
  class send_awaiter;
  class receive_awaiter;
  class sending;
  class receiving;

 public:
  using value_type = T;
  class iterator;

  /// Makes a channel for `capacity` values, at most 2^32 - 1; 0: a rendezvous. Throws std::bad_alloc, also for more.
  explicit channel(std::size_t capacity) {
    if (capacity != 0) values_.move_into(values_.allocate(capacity), capacity);
  }
  explicit channel(unbounded_t) noexcept : channel_core{true} {}

  /// Sends a value. Fails with channel_closed<T>, which has the value, if the channel is closed, also while this waits.
  [[nodiscard("nothing happens until it is awaited")]] sending send(T value) noexcept {
    return sending{*this, std::move(value)};
  }
  /// Receives the next value; std::nullopt once the channel is closed and empty.
  [[nodiscard("nothing happens until it is awaited")]] receiving receive() noexcept { return receiving{*this}; }

  /// Sends a value if that is possible without waiting. False: it was not sent, and `value` is unchanged. An unbounded channel
  /// throws std::bad_alloc.
  [[nodiscard("it says whether the value was sent")]] bool try_send(T&& value);
  [[nodiscard("it says whether the value was sent")]] bool try_send(const T& value)
    requires std::is_copy_constructible_v<T>
  {
    T copy(value);
    return try_send(std::move(copy));
  }
  /// Receives a value if there is one, without waiting.
  [[nodiscard("what was received is lost")]] std::optional<T> try_receive() noexcept;

  /// Closes the channel: senders, also those that wait, fail with channel_closed<T>; receivers get the values that are left. A
  /// second call does nothing.
  using channel_core::close;
  using channel_core::is_closed;
  /// Counts of waits to send and to receive.
  using channel_core::stats;

  std::size_t size() const noexcept;      ///< how many values are in it; may have changed when it is returned
  std::size_t capacity() const noexcept;  ///< as it was made with; if unbounded, how many values its ring holds now

  /// The values that it receives, up to the end, for pipelines: `c.values() | transform(f)`.
  async_generator<T> values() {
    while (std::optional<T> value = co_await receive()) co_yield std::move(*value);
  }

  /// The same for a fiber or a plain thread: `for (int n : numbers)`. Each value belongs to the loop, and may be moved from.
  /// Cancel and Fails are those of await() and sync_wait(). Inside a task it ends the program with a sentence: use
  /// `while (auto n = co_await numbers.receive())` there.
  iterator begin() { return iterator{*this}; }
  std::default_sentinel_t end() const noexcept { return {}; }

 private:
  template <class>
  friend class detail::receive_state;
  template <class>
  friend class detail::send_state;

  // What a send and a receive have in common with a case of a select. Under the lock: what is ready is done, but for the
  // waking, which comes when the lock is free.
  enum class outcome { done, closed, must_wait };
  outcome try_send_now(T& value, channel_waiter*& to_wake) noexcept;
  outcome try_receive_now(std::optional<T>& slot, channel_waiter*& to_wake) noexcept;
  // The same where there is room, or a value, and nobody waits.
  void put(T&& value) noexcept {
    changes = changes + 1;
    values_.push(std::move(value));
  }
  void take(std::optional<T>& slot) noexcept {
    changes = changes + 1;
    slot.emplace(values_.pop());
  }
  // Without the lock. False: it would have had to wait at the moment of the first read that counts. For who is in line to
  // send finds no room, so to read the ring first, and then the line and the mark that is never taken away, is to see all
  // of that moment.
  bool may_send() const noexcept {
    return unbounded || !values_.seems_full() || !receivers.seems_empty() || closed.peek();
  }
  bool may_receive() const noexcept { return !values_.seems_empty() || !senders.seems_empty() || closed.peek(); }
  /// Unbounded, and full: it grows before more is sent. Under the lock.
  bool lacks_room() const noexcept { return unbounded && values_.is_full() && !closed; }
  /// Makes room where it lacks; takes the lock, and returns with it held. Throws std::bad_alloc, without the lock.
  void lock_with_room();
  /// The same where the lock is held, with others: false if there is no memory.
  bool make_room() noexcept;

  detail::ring<T> values_;
};

// Where a value comes from, and where it goes. Whoever has claimed the wait uses them.
template <class T>
struct channel<T>::send_node : channel_waiter {
  send_node(const detail::wait_type& type, T& from) noexcept : channel_waiter{type}, value{std::addressof(from)} {}
  T* value;
};
template <class T>
struct channel<T>::receive_node : channel_waiter {
  receive_node(const detail::wait_type& type, std::optional<T>& to) noexcept : channel_waiter{type}, slot{&to} {}
  std::optional<T>* slot;
};

template <class T>
class channel<T>::send_awaiter : send_node, public detail::gate_awaiter<send_awaiter> {
 public:
  send_awaiter(channel& to, T&& value) noexcept : send_node{type, value_}, to_{to}, value_(std::move(value)) {}

  bool suspend(detail::root& self) noexcept {
    if (self.sleeper::stop_requested()) [[unlikely]]
      return (detail::end_stopped(self), true);
    channel_waiter* const one = to_.lock_or_claim(to_.receivers);
    if (one == nullptr) return put_or_wait(self);
    static_cast<receive_node*>(one)->slot->emplace(std::move(value_));
    one->wake();
    return false;
  }
  // See detail::may_need_no_wait.
  bool seems_ready() const noexcept { return to_.may_send(); }
  bool done_at_once(const detail::root& self) noexcept {
    if (self.sleeper::stop_requested()) return false;
    channel_waiter* const one = to_.lock_or_claim(to_.receivers);
    if (one == nullptr) return was_put();
    static_cast<receive_node*>(one)->slot->emplace(std::move(value_));
    one->wake();
    return true;
  }
  void await_resume() {
    if (this->closed) throw channel_closed<T>{std::move(value_)};
    if (no_memory_) throw std::bad_alloc{};
  }

 private:
  // With the lock, where nobody waits to receive.
  [[gnu::noinline]] bool was_put() noexcept {
    channel_waiter* to_wake = nullptr;
    const outcome how = to_.lacks_room() ? outcome::must_wait : to_.try_send_now(value_, to_wake);
    this->closed = how == outcome::closed;
    to_.lock.unlock();
    if (to_wake != nullptr) to_wake->wake();
    return how != outcome::must_wait;
  }
  // With the lock, where nobody waits to receive. Apart, so that to hand over is no more than it is.
  [[gnu::noinline]] bool put_or_wait(detail::root& self) noexcept {
    if (to_.closed || to_.values_.is_full()) [[unlikely]]
      return grow_or_wait(self);
    to_.put(std::move(value_));
    to_.lock.unlock();
    return false;
  }
  [[gnu::noinline]] bool grow_or_wait(detail::root& self) noexcept {
    if (to_.lacks_room()) try {
        to_.lock.unlock();
        to_.lock_with_room();
      } catch (...) {
        no_memory_ = true;
        return false;
      }
    channel_waiter* to_wake = nullptr;
    const outcome how = to_.try_send_now(value_, to_wake);
    if (how == outcome::must_wait) return (to_.wait(self, *this, to_.senders), true);
    this->closed = how == outcome::closed;
    to_.lock.unlock();
    if (to_wake != nullptr) to_wake->wake();
    return false;
  }
  static detail::on_stop leave(detail::waiter& self) noexcept {
    auto& mine = static_cast<send_awaiter&>(self);
    mine.to_.leave(mine, mine.to_.senders);
    return detail::on_stop::left;
  }
  static void tell(const detail::waiter& self, const char* what, detail::wait_subjects& into) noexcept {
    into.add(what, &static_cast<const send_awaiter&>(self).to_);
  }
  static const detail::wait_layout seen;
  static constexpr detail::wait_type type{.leave = leave, .name = "channel, to send", .tell = tell, .layout = &seen};

  channel& to_;
  T value_;
  bool no_memory_ = false;
};
WEFT_LAYOUT_IN(T, channel<T>::send_awaiter, stored_at(WEFT_BEHIND_WAITER(send_awaiter, to_)));

template <class T>
class WEFT_TO_BE_AWAITED("nothing is sent until it is awaited") channel<T>::sending : public detail::knows_roots {
 public:
  using may_be_a_case = void;
  send_awaiter operator co_await() && noexcept { return send_awaiter{*to_, std::move(value_)}; }
  send_case<T> as_case() && noexcept { return send_case<T>{*to_, std::move(value_)}; }

 private:
  friend channel;
  sending(channel& to, T&& value) noexcept : to_{&to}, value_(std::move(value)) {}
  channel* to_;
  T value_;
};

template <class T>
class channel<T>::receive_awaiter : receive_node, public detail::gate_awaiter<receive_awaiter> {
 public:
  explicit receive_awaiter(channel& from) noexcept : receive_node{type, value_}, from_{from} {}

  bool suspend(detail::root& self) noexcept {
    if (self.sleeper::stop_requested()) [[unlikely]]
      return (detail::end_stopped(self), true);
    return from_.lock_or_wait(self, *this, from_.values_.count()) || take_or_wait(self);
  }
  // See detail::may_need_no_wait.
  bool seems_ready() const noexcept { return from_.may_receive(); }
  bool done_at_once(const detail::root& self) noexcept {
    if (self.sleeper::stop_requested()) return false;
    channel_waiter* to_wake = nullptr;
    from_.lock.lock();
    const outcome how = from_.try_receive_now(value_, to_wake);
    from_.lock.unlock();
    if (to_wake != nullptr) to_wake->wake();
    return how != outcome::must_wait;
  }
  std::optional<T> await_resume() noexcept { return std::move(value_); }

 private:
  // With the lock, where something may be there: those in line to send may all have been stopped.
  [[gnu::noinline]] bool take_or_wait(detail::root& self) noexcept {
    if (from_.values_.size() == 0 || !from_.senders.empty()) [[unlikely]]
      return take_from_sender_or_wait(self);
    from_.take(value_);
    from_.lock.unlock();
    return false;
  }
  [[gnu::noinline]] bool take_from_sender_or_wait(detail::root& self) noexcept {
    channel_waiter* to_wake = nullptr;
    if (from_.try_receive_now(value_, to_wake) == outcome::must_wait)
      return (from_.wait(self, *this, from_.receivers), true);
    from_.lock.unlock();
    if (to_wake != nullptr) to_wake->wake();
    return false;
  }
  static detail::on_stop leave(detail::waiter& self) noexcept {
    auto& mine = static_cast<receive_awaiter&>(self);
    mine.from_.leave(mine, mine.from_.receivers);
    return detail::on_stop::left;
  }
  static void tell(const detail::waiter& self, const char* what, detail::wait_subjects& into) noexcept {
    into.add(what, &static_cast<const receive_awaiter&>(self).from_);
  }
  static const detail::wait_layout seen;
  static constexpr detail::wait_type type{.leave = leave, .name = "channel, to receive", .tell = tell, .layout = &seen};

  channel& from_;
  std::optional<T> value_;
};
WEFT_LAYOUT_IN(T, channel<T>::receive_awaiter, stored_at(WEFT_BEHIND_WAITER(receive_awaiter, from_)));

template <class T>
class WEFT_TO_BE_AWAITED("nothing is received until it is awaited") channel<T>::receiving : public detail::knows_roots {
 public:
  using may_be_a_case = void;
  receive_awaiter operator co_await() const noexcept { return receive_awaiter{*from_}; }
  receive_case<T> as_case() const noexcept { return receive_case<T>{*from_}; }

 private:
  friend channel;
  explicit receiving(channel& from) noexcept : from_{&from} {}
  channel* from_;
};

/// What a range-for has: the value that was received last. At the end once there was none.
template <class T>
class channel<T>::iterator {
 public:
  using value_type = T;
  using difference_type = std::ptrdiff_t;

  /// Waits for the first value, as each ++ does for the next.
  explicit iterator(channel& from) : from_{&from} { ++*this; }
  T& operator*() const noexcept { return *value_; }
  iterator& operator++() {
    value_ = this_fiber::is_running() ? await(from_->receive()) : sync_wait(from_->receive());
    return *this;
  }
  void operator++(int) { ++*this; }
  bool operator==(std::default_sentinel_t) const noexcept { return !value_; }

 private:
  channel* from_;
  mutable std::optional<T> value_;  // of an input iterator: who has the iterator has the value
};

template <class T>
auto channel<T>::try_send_now(T& value, channel_waiter*& to_wake) noexcept -> outcome {
  if (closed) return outcome::closed;
  changes = changes + 1;
  if (auto* receiver = static_cast<receive_node*>(pop(receivers))) {
    receiver->slot->emplace(std::move(value));
    to_wake = receiver;
    return outcome::done;
  }
  if (values_.is_full()) return outcome::must_wait;
  values_.push(std::move(value));
  return outcome::done;
}

template <class T>
auto channel<T>::try_receive_now(std::optional<T>& slot, channel_waiter*& to_wake) noexcept -> outcome {
  changes = changes + 1;
  if (values_.size() != 0) {
    if (auto* sender = static_cast<send_node*>(pop(senders))) {
      slot.emplace(values_.pop_and_push(std::move(*sender->value)));
      to_wake = sender;
    } else {
      slot.emplace(values_.pop());
    }
    return outcome::done;
  }
  if (auto* sender = static_cast<send_node*>(pop(senders))) {
    slot.emplace(std::move(*sender->value));
    to_wake = sender;
    return outcome::done;
  }
  return closed ? outcome::closed : outcome::must_wait;
}

template <class T>
void channel<T>::lock_with_room() {
  lock.lock();
  while (lacks_room()) {
    const std::size_t seen = values_.capacity(), capacity = seen == 0 ? 16 : 2 * seen;
    lock.unlock();
    T* items = values_.allocate(capacity);
    lock.lock();
    if (values_.capacity() == seen) items = values_.move_into(items, capacity);  // else another one was faster
    lock.unlock();
    values_.release(items);
    lock.lock();
  }
}

template <class T>
bool channel<T>::make_room() noexcept {
  if (!unbounded || !values_.is_full()) return true;
  const std::size_t capacity = values_.capacity() == 0 ? 16 : 2 * values_.capacity();
  try {
    values_.release(values_.move_into(values_.allocate(capacity), capacity));
    return true;
  } catch (...) {
    return false;
  }
}

template <class T>
bool channel<T>::try_send(T&& value) {
  if (!may_send()) return false;
  channel_waiter* to_wake = nullptr;
  lock_with_room();
  const outcome how = try_send_now(value, to_wake);
  lock.unlock();
  if (to_wake != nullptr) to_wake->wake();
  return how == outcome::done;
}

template <class T>
std::optional<T> channel<T>::try_receive() noexcept {
  std::optional<T> value;
  if (!may_receive()) return value;
  channel_waiter* to_wake = nullptr;
  lock.lock();
  try_receive_now(value, to_wake);
  lock.unlock();
  if (to_wake != nullptr) to_wake->wake();
  return value;
}

template <class T>
std::size_t channel<T>::size() const noexcept {
  lock.lock();
  const std::size_t count = values_.size();
  lock.unlock();
  return count;
}
template <class T>
std::size_t channel<T>::capacity() const noexcept {
  lock.lock();
  const std::size_t room = values_.capacity();
  lock.unlock();
  return room;
}

}  // namespace weft

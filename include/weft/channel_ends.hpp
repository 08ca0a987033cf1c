// The ends of a channel: one that only sends, and one that only receives.
//
// `sender` and `receiver` are views: pointers to a channel that outlives them. `counted_sender` and `counted_receiver`, which
// make_channel() gives, own the channel together. When the last end of a kind is gone, the channel is closed, so nobody waits
// for ends that no longer exist.
//
// Each kind is counted by a std::shared_ptr. The last end of a kind closes the channel, and drops its reference to it.
#pragma once

#include <concepts>
#include <cstddef>
#include <iterator>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <weft/async_generator.hpp>
#include <weft/channel.hpp>
#include <weft/detail/channel/channel_end.hpp>
#include <weft/select_cases.hpp>

namespace weft {

/// An end that only sends: a pointer to a channel, which may be copied.
///
///     task<> produce(sender<int> to) { co_await to.send(7); }
///     co_await produce(numbers);  // a channel<int>
///
/// Lifetime  the channel outlives it, and the waits that it begins. Misuse: using an empty one ends the program with a
///           sentence.
/// Threads   any thread, one at a time for each copy.
template <class T>
class sender : public detail::send_end<T> {
 public:
  sender() noexcept = default;  ///< empty
  sender(channel<T>& to) noexcept : detail::send_end<T>{&to} {}
  sender(const detail::send_end<T>& other) noexcept : detail::send_end<T>{other} {}  ///< of one that counts: uncounted
};

/// An end that only receives. Otherwise as sender.
template <class T>
class receiver : public detail::receive_end<T> {
 public:
  receiver() noexcept = default;
  receiver(channel<T>& from) noexcept : detail::receive_end<T>{&from} {}  ///< an end of this channel
  /// Of one that counts: uncounted.
  receiver(const detail::receive_end<T>& other) noexcept : detail::receive_end<T>{other} {}
};

namespace detail { struct make_ends; }

/// A counted end that sends. When the last one is gone, the channel is closed, and receivers get the values that are left. A
/// copy counts as another one; one that was moved from does not count.
///
/// Lifetime  the channel lives as long as any of its ends. A wait (a send, a select) does not count: its end outlives it.
/// Threads   any thread, one at a time for each end.
/// Cost      an atomic read-modify-write to copy it, and one to destroy it.
template <class T>
class counted_sender : public detail::send_end<T> {
 public:
  counted_sender() noexcept = default;  ///< of no channel
  counted_sender(const counted_sender&) = default;
  counted_sender(counted_sender&& other) noexcept
      : detail::send_end<T>{std::exchange(other.of_, nullptr)}, counted_{std::move(other.counted_)} {}
  counted_sender& operator=(counted_sender other) noexcept {
    std::swap(this->of_, other.of_);
    std::swap(counted_, other.counted_);
    return *this;
  }
  ~counted_sender() = default;

  /// Gives this end up: it no longer counts.
  void leave() noexcept { *this = counted_sender{}; }

 private:
  friend detail::make_ends;
  explicit counted_sender(std::shared_ptr<channel<T>> counted) noexcept
      : detail::send_end<T>{counted.get()}, counted_{std::move(counted)} {}
  std::shared_ptr<channel<T>> counted_;
};

/// A counted end that receives. When the last one is gone, the channel is closed: senders fail with channel_closed<T>, and the
/// values in it are destroyed. Otherwise as counted_sender.
template <class T>
class counted_receiver : public detail::receive_end<T> {
 public:
  counted_receiver() noexcept = default;  ///< of no channel
  counted_receiver(const counted_receiver&) = default;
  counted_receiver(counted_receiver&& other) noexcept
      : detail::receive_end<T>{std::exchange(other.of_, nullptr)}, counted_{std::move(other.counted_)} {}
  counted_receiver& operator=(counted_receiver other) noexcept {
    std::swap(this->of_, other.of_);
    std::swap(counted_, other.counted_);
    return *this;
  }
  ~counted_receiver() = default;

  /// Gives this end up: it no longer counts.
  void leave() noexcept { *this = counted_receiver{}; }

 private:
  friend detail::make_ends;
  explicit counted_receiver(std::shared_ptr<channel<T>> counted) noexcept
      : detail::receive_end<T>{counted.get()}, counted_{std::move(counted)} {}
  std::shared_ptr<channel<T>> counted_;
};

namespace detail {

struct make_ends {
  template <class T, class Room>
  static std::pair<counted_sender<T>, counted_receiver<T>> of(Room room) {
    const auto own = std::make_shared<channel<T>>(room);
    // Each closes it when it is the last of its kind, and then lets go of it.
    std::shared_ptr<channel<T>> sends{own.get(), [own](channel<T>* one) noexcept { one->close(); }};
    std::shared_ptr<channel<T>> receives{own.get(), [own](channel<T>* one) noexcept {
                                           one->close();
                                           while (one->try_receive()) {
                                           }
                                         }};
    return {counted_sender<T>{std::move(sends)}, counted_receiver<T>{std::move(receives)}};
  }
};

}  // namespace detail

/// Makes a channel that its ends own, for `capacity` values (0: a rendezvous) or unbounded: see counted_sender and
/// counted_receiver.
///
///     auto [to, from] = make_channel<int>(16);
///     for (int i = 0; i != 4; ++i) s.fork(produce(to, i));  // each has a copy
///     to.leave();
///     while (auto n = co_await from.receive()) use(*n);     // until all four have ended
///
/// Fails  std::bad_alloc.
/// Cost   three allocations, besides the ring.
template <class T>
std::pair<counted_sender<T>, counted_receiver<T>> make_channel(std::size_t capacity) {
  return detail::make_ends::of<T>(capacity);
}
template <class T>
std::pair<counted_sender<T>, counted_receiver<T>> make_channel(unbounded_t) {
  return detail::make_ends::of<T>(unbounded);
}

/// Cases of a select that receive or send by an end: as those of its channel.
template <class T>
receive_case<T> on_receive(const detail::receive_end<T>& from) noexcept {
  return receive_case<T>{detail::case_of_end::at(from)};
}
template <class T, class U>
  requires std::is_constructible_v<T, U&&>
send_case<T> on_send(const detail::send_end<T>& to, U&& value) {
  return send_case<T>{detail::case_of_end::at(to), T(std::forward<U>(value))};
}

}  // namespace weft

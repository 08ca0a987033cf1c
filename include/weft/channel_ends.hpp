// The ends of a channel: what only sends, and what only receives.
//
// A sender and a receiver are views: pointers to a channel, which lies elsewhere and outlives them. Those that count, which
// make_channel() gives, own it together: when the last of one kind has gone, the channel is closed, so nobody waits for who
// never comes.
//
// They are counted by two std::shared_ptr to one channel. The last one of a kind closes it, and lets go of the third, which
// is the channel's own.
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

/// An end that only sends: a pointer to a channel. Copy it freely, while the channel lives.
///
///     task<> produce(sender<int> to) { co_await to.send(7); }
///     co_await produce(numbers);  // a channel<int>
///
/// Lifetime  the channel outlives it, and what waits with it. One that is empty must not be used (the program ends).
/// Threads   any; each copy is of one thread at a time.
template <class T>
class sender : public detail::send_end<T> {
 public:
  sender() noexcept = default;  ///< empty
  sender(channel<T>& to) noexcept : detail::send_end<T>{&to} {}
  sender(const detail::send_end<T>& other) noexcept : detail::send_end<T>{other} {}  ///< of one that counts: uncounted
};

/// An end that only receives: as sender.
template <class T>
class receiver : public detail::receive_end<T> {
 public:
  receiver() noexcept = default;
  receiver(channel<T>& from) noexcept : detail::receive_end<T>{&from} {}  ///< an end of this channel
  /// Of one that counts: uncounted.
  receiver(const detail::receive_end<T>& other) noexcept : detail::receive_end<T>{other} {}
};

namespace detail { struct make_ends; }

/// An end that sends, and counts: when the last one has gone, the channel is closed, and receivers drain it. A copy is
/// another one; who is moved from is none.
///
/// Lifetime  the channel lives as long as any end of it. What waits with an end (a send, a select) does not count: the end
///           stays until that is over.
/// Threads   any; each end is of one thread at a time.
/// Cost      a copy and its end are an atomic read-modify-write each.
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

  /// Sends nothing more: it is one less.
  void leave() noexcept { *this = counted_sender{}; }

 private:
  friend detail::make_ends;
  explicit counted_sender(std::shared_ptr<channel<T>> counted) noexcept
      : detail::send_end<T>{counted.get()}, counted_{std::move(counted)} {}
  std::shared_ptr<channel<T>> counted_;
};

/// An end that receives, and counts: when the last one has gone, the channel is closed, so that senders fail with
/// channel_closed<T>, and what is in it is destroyed. Else as counted_sender.
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

  /// Receives nothing more: it is one less.
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

/// Makes a channel that belongs to its ends, with room for `capacity` values (0: a rendezvous), or unbounded: see
/// counted_sender and counted_receiver.
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

/// A receive by an end as a case of a select: as by its channel, and so is a send.
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

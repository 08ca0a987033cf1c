// What the ends of a channel are made of. Part of channel_ends.hpp.
#pragma once

#include <concepts>
#include <cstddef>
#include <iterator>
#include <optional>
#include <type_traits>
#include <utility>
#include <weft/async_generator.hpp>
#include <weft/channel.hpp>
#include <weft/detail/base/config.hpp>
#include <weft/sync_stats.hpp>

namespace weft::detail {

/// What an end is made of: a channel, or none.
template <class T>
class channel_end {
 public:
  using value_type = T;

  explicit operator bool() const noexcept { return of_ != nullptr; }
  bool is_closed() const noexcept { return at().is_closed(); }
  std::size_t size() const noexcept { return at().size(); }          ///< values in it, over when it is read
  std::size_t capacity() const noexcept { return at().capacity(); }  ///< as of the channel
  sync_stats stats() const noexcept { return at().stats(); }

  /// Whether both are of one channel.
  bool is_of(const channel<T>& one) const noexcept { return of_ == &one; }
  bool is_of(const channel_end& other) const noexcept { return of_ == other.of_; }

 protected:
  friend struct case_of_end;
  channel_end() noexcept = default;
  explicit channel_end(channel<T>* of) noexcept : of_{of} {}
  channel_end(const channel_end&) = default;
  channel_end& operator=(const channel_end&) = default;
  ~channel_end() = default;

  channel<T>& at() const noexcept {
    WEFT_EXPECTS(of_ != nullptr, "an end of no channel was used: it was moved from, or has left");
    return *of_;
  }

  channel<T>* of_ = nullptr;
};

/// What all that send have in common.
template <class T>
class send_end : public channel_end<T> {
 public:
  /// As channel::send.
  [[nodiscard("nothing happens until it is awaited")]] auto send(T value) const noexcept {
    return this->at().send(std::move(value));
  }
  /// As channel::try_send.
  [[nodiscard("it says whether the value was sent")]] bool try_send(T&& value) const {
    return this->at().try_send(std::move(value));
  }
  [[nodiscard("it says whether the value was sent")]] bool try_send(const T& value) const
    requires std::is_copy_constructible_v<T>
  {
    return this->at().try_send(value);
  }
  /// Closes the channel, for all ends.
  void close() const noexcept { this->at().close(); }

 protected:
  using channel_end<T>::channel_end;
  send_end(const send_end&) = default;
  send_end& operator=(const send_end&) = default;
  ~send_end() = default;
};

/// What all that receive have in common.
template <class T>
class receive_end : public channel_end<T> {
 public:
  /// As channel::receive.
  [[nodiscard("nothing happens until it is awaited")]] auto receive() const noexcept { return this->at().receive(); }
  /// As channel::try_receive.
  [[nodiscard("what was received is lost")]] std::optional<T> try_receive() const noexcept {
    return this->at().try_receive();
  }
  /// All that is received, up to its end: as channel::values. The channel outlives it.
  async_generator<T> values() const { return this->at().values(); }
  /// The same in a fiber or on a plain thread: `for (int n : numbers)`. As of a channel.
  auto begin() const { return this->at().begin(); }
  std::default_sentinel_t end() const noexcept { return {}; }

 protected:
  using channel_end<T>::channel_end;
  receive_end(const receive_end&) = default;
  receive_end& operator=(const receive_end&) = default;
  ~receive_end() = default;
};

struct case_of_end {
  template <class T>
  static channel<T>& at(const channel_end<T>& one) noexcept {
    return one.at();
  }
};

}  // namespace weft::detail

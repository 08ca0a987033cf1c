// A watch: one value, and receivers that wait for it to change. It counts how often the value was set, and a receiver remembers
// the count of the value that it got last.
//
// Copies are made under the lock; for a receiver that waits, by the setter. So copies must not throw: for a type that is
// expensive to copy, use a std::shared_ptr<const T>.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>
#include <weft/detail/base/peeked.hpp>
#include <weft/detail/channel/channel_core.hpp>
#include <weft/detail/core/root.hpp>
#include <weft/detail/core/waiter.hpp>
#include <weft/detail/sync/gate.hpp>
#include <weft/receiver_of.hpp>

namespace weft {

/// A value whose changes can be awaited. A slow receiver gets the latest value, not each one.
///
///     watch<std::shared_ptr<const settings>> current{read_settings()};
///     auto mine = current.subscribe();
///     while (auto s = co_await mine.receive()) apply(**s);  // as they are now, and again when they were set
///
/// Cost  no allocation. Setting it: a copy and a wake-up for each receiver that waits.
template <class T>
class watch : detail::channel_core {
  static_assert(std::is_nothrow_copy_constructible_v<T> && std::is_nothrow_swappable_v<T>,
                "a watch copies its value under its lock, so that must not throw: use a std::shared_ptr<const T>");

 public:
  using value_type = T;
  using receiver = receiver_of<watch>;

  explicit watch(T value) noexcept : value_(std::move(value)) {}  ///< the first value that receivers get
  ~watch() {
    lock.lock();
    WEFT_EXPECTS(handles_ == 0, "a watch was destroyed while a receiver of it is left");
    lock.unlock();
  }

  /// Makes a receiver, which gets the present value first.
  receiver subscribe() noexcept {
    lock.lock();
    ++handles_;
    const place before{set_ - 1};
    lock.unlock();
    return receiver{*this, before};
  }

  /// Sets the value. False: it is closed, and the value is unchanged. Never waits.
  bool set(T value) noexcept;
  T get() const noexcept {
    lock.lock();
    T copy(value_);
    lock.unlock();
    return copy;
  }

  /// Closes it: it can't be set any more. Receivers get the value if they have not got it, and then nothing.
  using channel_core::close;
  using channel_core::is_closed;
  /// Counts of waits.
  using channel_core::stats;

 private:
  template <class>
  friend class receiver_of;
  template <class>
  friend class detail::subscriber_awaiter;
  template <class>
  friend class detail::subscriber_case;
  template <class>
  friend struct detail::subscriber;

  using node = detail::subscriber<watch>;
  static constexpr const char* to_receive = "watch, to receive";
  using receipt = detail::receipt;
  struct place {
    std::uint64_t seen = 0;
    std::uint64_t missed = 0;
    bool awaited = false;  // as in a broadcast
  };

  receipt try_receive_now(place& at, std::optional<T>& to, detail::let_through&) noexcept {
    if (at.seen == set_) return closed ? receipt::over : receipt::must_wait;
    at.missed += set_ - at.seen - 1;
    at.seen = set_;
    to.emplace(std::as_const(value_));
    return receipt::done;
  }
  void drop(place&, detail::let_through&) noexcept { --handles_; }
  detail::waiter_line& line() noexcept { return channel_core::receivers; }
  // Without the lock, for a guess. By the receiver whose place that is.
  bool may_receive(const place& at) const noexcept { return at.seen != set_.peek() || closed.peek(); }

  T value_;
  detail::peeked<std::uint64_t> set_ = 1;  // how often
  std::size_t handles_ = 0;                // receivers
};

template <class T>
bool watch<T>::set(T value) noexcept {
  detail::let_through through;
  lock.lock();
  if (closed) return (lock.unlock(), false);
  using std::swap;
  swap(value_, value);  // what it was is destroyed when the lock is free
  set_ = set_ + 1;
  while (auto* one = static_cast<node*>(pop(line()))) {
    one->slot.emplace(std::as_const(value_));
    one->at.seen = set_;
    through.push(*one);
  }
  lock.unlock();
  return true;
}

}  // namespace weft

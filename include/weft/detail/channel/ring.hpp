// A ring of values, of a channel or a broadcast.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>
#include <weft/detail/base/peeked.hpp>

namespace weft::detail {

/// Values in order, in a ring. All under its owner's lock, but for what only seems so.
template <class T>
class ring {
 public:
  ring() = default;
  ring(const ring&) = delete;
  ~ring() {
    while (count_ != 0) static_cast<void>(pop());
    release(items_);
  }

  std::size_t size() const noexcept { return count_; }
  const peeked<std::uint32_t>& count() const noexcept { return count_; }
  std::size_t capacity() const noexcept { return capacity_; }
  bool is_full() const noexcept { return count_ == capacity_; }
  bool seems_empty() const noexcept { return count_.peek() == 0; }
  bool seems_full() const noexcept { return count_.peek() == capacity_.peek(); }
  /// From the oldest on.
  T& operator[](std::size_t i) noexcept { return items_[at(i)]; }

  void push(T&& value) noexcept {
    ::new (static_cast<void*>(items_ + at(count_))) T(std::move(value));
    count_ = count_ + 1;
  }
  T pop() noexcept {
    T& front = items_[first_];
    T value(std::move(front));
    front.~T();
    if (++first_ == capacity_) first_ = 0;
    count_ = count_ - 1;
    return value;
  }
  /// The same where it is full, and stays so: `last` comes in at once.
  T pop_and_push(T&& last) noexcept {
    T& front = items_[first_];
    T value(std::move(front));
    front.~T();
    ::new (static_cast<void*>(items_ + first_)) T(std::move(last));
    if (++first_ == capacity_) first_ = 0;
    return value;
  }

  static T* allocate(std::size_t capacity) {
    if (capacity > most || capacity > std::size_t(-1) / sizeof(T)) throw std::bad_alloc{};
    return static_cast<T*>(::operator new(capacity * sizeof(T), std::align_val_t{alignof(T)}));
  }
  static void release(T* items) noexcept {
    if (items != nullptr) ::operator delete(items, std::align_val_t{alignof(T)});
  }
  /// Moves into `items`, and returns what it had before, to be released.
  T* move_into(T* items, std::size_t capacity) noexcept {
    for (std::size_t i = 0; i != count_; ++i) {  // which stays: who only looks sees all that is there
      T& from = items_[at(i)];
      ::new (static_cast<void*>(items + i)) T(std::move(from));
      from.~T();
    }
    first_ = 0;
    capacity_ = static_cast<std::uint32_t>(capacity);
    return std::exchange(items_, items);
  }

 private:
  std::size_t at(std::size_t i) const noexcept {
    i += first_;
    return i >= capacity_ ? i - capacity_ : i;
  }

  static constexpr std::size_t most = std::uint32_t(-1);

  peeked<std::uint32_t> count_ = 0;
  peeked<std::uint32_t> capacity_ = 0;
  std::uint32_t first_ = 0;
  T* items_ = nullptr;
};

}  // namespace weft::detail

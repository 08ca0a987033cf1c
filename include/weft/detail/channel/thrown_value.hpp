// A value in an exception. Part of channel.hpp.
#pragma once

#include <cstdint>
#include <new>
#include <type_traits>
#include <utility>

namespace weft::detail {

/// A value in an exception, which no compiler aligns for more than operator new does by itself.
template <class T>
class thrown_value {
 public:
  explicit thrown_value(T&& from) noexcept : value_(std::move(from)) {}
  T& get() noexcept { return value_; }

 private:
  T value_;
};
template <class T>
  requires(alignof(T) > __STDCPP_DEFAULT_NEW_ALIGNMENT__)
class thrown_value<T> {
 public:
  explicit thrown_value(T&& from) noexcept { ::new (place()) T(std::move(from)); }
  thrown_value(thrown_value&& other) noexcept : thrown_value{std::move(other.get())} {}
  thrown_value(const thrown_value& other)
    requires std::is_copy_constructible_v<T>
  {
    ::new (place()) T(std::as_const(const_cast<thrown_value&>(other).get()));
  }
  ~thrown_value() { get().~T(); }
  T& get() noexcept { return *std::launder(static_cast<T*>(place())); }

 private:
  void* place() noexcept {  // wherever this lies now
    const std::uintptr_t misfit = reinterpret_cast<std::uintptr_t>(bytes_) % alignof(T);
    return bytes_ + (misfit == 0 ? 0 : alignof(T) - misfit);
  }
  unsigned char bytes_[sizeof(T) + alignof(T) - 1];
};

}  // namespace weft::detail

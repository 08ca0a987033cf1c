// In the place of weft's file of this name, but for a model that is about it: there each look without the lock would be a
// step of its own, in all scenarios.
#if defined(MODEL_PEEKS)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wgnu-include-next"
#include_next <weft/detail/base/peeked.hpp>
#pragma clang diagnostic pop
#else
#pragma once

#include <atomic>

namespace weft::detail {

template <class T>
class peeked {
 public:
  peeked(T value = {}) noexcept : value_{value} {}
  operator T() const noexcept { return value_.load(std::memory_order_relaxed); }
  void operator=(T value) noexcept { value_.store(value, std::memory_order_relaxed); }
  T peek() const noexcept { return *this; }

 private:
  std::atomic<T> value_;
};

}  // namespace weft::detail
#endif

// A word that is written under a lock, and read without it to see whether taking the lock is worth while. Each read sees
// what was so at some moment since the reader last heard of the writer, and no later one sees less; whoever acts upon it
// takes the lock and looks again.
#pragma once

#include <atomic>
#include <weft/detail/base/atomic.hpp>

namespace weft::detail {

template <class T>
class peeked {
 public:
  constexpr peeked(T value = {}) noexcept : value_{value} {}

  /// Under the lock, or alone.
  operator T() const noexcept { return value_.load(std::memory_order_relaxed); }        // the lock's edge
  void operator=(T value) noexcept { value_.store(value, std::memory_order_release); }  // -> seen
  /// Without it, one of several that are read in this order.
  T peek() const noexcept { return value_.load(std::memory_order_acquire); }  // <- seen

 private:
  //   edge seen  what was written before it  ->  who has seen it, and looks at that, too
  //
  // test/model/select_model.cpp fails without either half.
  atomic<T> value_;
};

}  // namespace weft::detail

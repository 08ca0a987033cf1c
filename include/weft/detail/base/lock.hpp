// A lock for a few instructions: the lists of waiters. It is one byte, never held over a call to foreign code, and
// whoever finds it taken gives the processor away rather than sleeps.
#pragma once

#include <atomic>
#include <weft/detail/base/atomic.hpp>
#include <weft/detail/base/config.hpp>

namespace weft::detail {

class tiny_lock {
 public:
  void lock() noexcept {
    if (taken_.exchange(true, std::memory_order_acquire)) lock_contended();  // <- list
  }
  bool try_lock() noexcept { return !taken_.exchange(true, std::memory_order_acquire); }  // <- list
  void unlock() noexcept { taken_.store(false, std::memory_order_release); }              // -> list

 private:
  void lock_contended() noexcept;

  //   edge list  what the holder changed  ->  the next holder
  atomic<bool> taken_{false};
};

}  // namespace weft::detail

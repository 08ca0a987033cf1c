// Where new threads wait until all have been started, or one could not be.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <weft/detail/base/atomic.hpp>

#include "base/futex.hpp"

namespace weft::detail {

class starting_gate {
 public:
  /// By the thread that has started them, once. `all`: none is missing.
  void open(bool all) noexcept {
    word_.store(all ? opened : shut, std::memory_order_release);  // -> gate
    word_futex{word_}.wake();
  }
  /// By each of them: waits. False: one is missing, so it is to end.
  bool pass() noexcept {
    std::uint32_t seen;
    while ((seen = word_.load(std::memory_order_acquire)) == closed)  // <- gate
      word_futex{word_}.wait(closed, std::chrono::steady_clock::time_point::max());
    return seen == opened;
  }

 private:
  static constexpr std::uint32_t closed = 0, opened = 1, shut = 2;
  //   edge gate  the handles of all threads  ->  each of them
  atomic<std::uint32_t> word_{closed};
};

}  // namespace weft::detail

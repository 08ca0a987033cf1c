// A number that one thread counts.
#pragma once

#include <atomic>
#include <cstdint>

namespace weft::detail {

/// One thread counts, any thread reads. No edge: it says nothing of anything else.
class count {
 public:
  void add(std::uint64_t more = 1) noexcept {
    value_.store(value_.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);  // as said
  }
  void subtract_one() noexcept { add(~std::uint64_t{0}); }
  std::uint64_t get() const noexcept { return value_.load(std::memory_order_relaxed); }  // as said

 private:
  std::atomic<std::uint64_t> value_{0};
};

}  // namespace weft::detail

// Figures that one thread writes and any thread reads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace weft::detail {

/// One thread counts, any thread reads.
class count {
 public:
  void add(std::uint64_t more = 1) noexcept {
    value_.store(value_.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);  // as declared
  }
  void subtract_one() noexcept { add(~std::uint64_t{0}); }
  std::uint64_t get() const noexcept { return value_.load(std::memory_order_relaxed); }  // as declared

 private:
  std::atomic<std::uint64_t> value_{0};  // relaxed: a count says nothing of other memory
};

/// How long a thread has slept, in nanoseconds of a clock that began above 0: its past sleeps, and the present one. That
/// thread says when it begins and ends, any thread reads. It is one number, so that a reader sees no sleep twice, or not at
/// all: while the thread sleeps, the time at which it fell asleep is subtracted, so the number is below zero.
class time_asleep {
 public:
  time_asleep() noexcept = default;
  /// Begins with a sleep.
  explicit time_asleep(std::uint64_t sleeps_since) noexcept : value_{-static_cast<std::int64_t>(sleeps_since)} {}

  void begins(std::uint64_t now) noexcept { add(-static_cast<std::int64_t>(now)); }
  void ends(std::uint64_t now) noexcept { add(static_cast<std::int64_t>(now)); }

  struct reading {
    std::uint64_t so_far;
    bool sleeps;
  };
  reading get(std::uint64_t now) const noexcept {
    const std::int64_t value = value_.load(std::memory_order_relaxed);  // as declared
    const std::int64_t so_far = value < 0 ? std::max(value + static_cast<std::int64_t>(now), std::int64_t{0}) : value;
    return {.so_far = static_cast<std::uint64_t>(so_far), .sleeps = value < 0};
  }

 private:
  void add(std::int64_t more) noexcept {
    value_.store(value_.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);  // as declared
  }

  std::atomic<std::int64_t> value_{0};  // relaxed: a figure says nothing of other memory
};

}  // namespace weft::detail

// Sleeping on a word, and waking who sleeps there. A wake-up takes only the address: the word may be gone.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <climits>
#include <cstdint>
#include <ctime>

namespace weft::detail {

/// Sleeps while the word is `expected`. May return at any time.
inline void futex_wait(const void* word, std::uint32_t expected) noexcept {
  ::syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
}

/// The same, until `when` at most. CLOCK_MONOTONIC, which is what steady_clock counts.
inline void futex_wait_until(const void* word, std::uint32_t expected,
                             std::chrono::steady_clock::time_point when) noexcept {
  const auto since = when.time_since_epoch();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since);
  timespec at;
  at.tv_sec = seconds.count();
  at.tv_nsec = std::chrono::nanoseconds{since - seconds}.count();
  ::syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, expected, &at, nullptr, FUTEX_BITSET_MATCH_ANY);
}

inline void futex_wake(const void* word) noexcept {
  ::syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace weft::detail

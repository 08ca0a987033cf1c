// Sleeping on a word, and waking threads that sleep there. A wake-up only uses the address of the word, which may be gone.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bit>
#include <chrono>
#include <climits>
#include <cstdint>
#include <ctime>
#include <weft/detail/base/atomic.hpp>

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

/// A word to sleep on.
class word_futex {
 public:
  explicit word_futex(const atomic<std::uint32_t>& word) noexcept : word_{&word} {}

  /// Sleeps while the word is `expected`, until `when` at most, if that is not time_point::max(). May return at any time.
  void wait(std::uint32_t expected, std::chrono::steady_clock::time_point when) const noexcept {
    if (when == when.max())
      futex_wait(word_, expected);
    else
      futex_wait_until(word_, expected, when);
  }
  void wake() const noexcept { futex_wake(word_); }

 private:
  const void* word_;
};

/// A pointer to sleep on: its lower half, since a futex is 32 bits wide.
class pointer_futex {
 public:
  template <class T>
  explicit pointer_futex(const atomic<T*>& word) noexcept
      : low_half_{reinterpret_cast<const char*>(&word) + (std::endian::native == std::endian::little ? 0 : 4)} {}

  /// Sleeps while the pointer is `expected`; for `most` at most, if that is not 0. May return at any time.
  void wait(const void* expected, std::chrono::milliseconds most) const noexcept {
    const auto low = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(expected));
    if (most == most.zero())
      futex_wait(low_half_, low);
    else
      futex_wait_until(low_half_, low, std::chrono::steady_clock::now() + most);
  }
  void wake() const noexcept { futex_wake(low_half_); }

 private:
  const void* low_half_;
};

}  // namespace weft::detail

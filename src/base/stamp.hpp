// A time stamp that is cheap to take: the processor's own counter, which ticks at one rate on all processors. What a tick is
// in nanoseconds is found out later, by who reads stamps, from two pairs of a stamp and a time. Some 9 ns, where steady_clock
// takes 21.
//
// Where the processor says that its counter stands still or changes its rate, a stamp is steady_clock's time. Which of both
// does not change while a process runs.
#pragma once

#include <time.h>

#include <cstdint>

namespace weft::detail {

inline std::uint64_t steady_nanoseconds() noexcept {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

#if defined(__x86_64__)
/// Whether the processor's counter never stops and never changes its rate ("invariant"). Set before the program's own code
/// runs.
extern constinit bool stamps_are_ticks;
#endif

/// The processor's counter, whatever it is good for; where no counter is known, steady_clock's time.
inline std::uint64_t processor_ticks() noexcept {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
  std::uint64_t ticks;
  asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
#elif defined(__riscv) && __riscv_xlen == 64
  std::uint64_t ticks;
  asm volatile("rdtime %0" : "=r"(ticks));
  return ticks;
#else
  return steady_nanoseconds();
#endif
}

/// Never 0, once the program's own code runs.
inline std::uint64_t stamp_now() noexcept {
#if defined(__x86_64__)
  if (!stamps_are_ticks) [[unlikely]]
    return steady_nanoseconds();
#endif
  return processor_ticks();
}

#if defined(__x86_64__)
/// steady_nanoseconds(), called.
[[gnu::cold]] std::uint64_t stamp_without_ticks() noexcept;
#endif

/// stamp_now() in a function that calls nothing else, and so has no room on its stack for what is called seldom.
inline std::uint64_t stamp_now_in_leaf() noexcept {
#if defined(__x86_64__)
  if (!stamps_are_ticks) [[unlikely]]
    return stamp_without_ticks();
#endif
  return processor_ticks();
}

}  // namespace weft::detail

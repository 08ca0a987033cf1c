// Spins while another thread does a few instructions: pauses a few times, and then yields the processor at each round.
#pragma once

#include <sched.h>

#include <chrono>

namespace weft::detail {

class spin_wait {
 public:
  void once() noexcept {
    if (++rounds_ > 32) {
      ::sched_yield();
      return;
    }
    pause();
  }

  /// A few cycles, which the core gives to its other hardware thread.
  static void pause() noexcept {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }

  /// Waits for about so many nanoseconds, however long a pause is: 10 cycles on one processor, 140 on another.
  static void back_off(unsigned nanoseconds) noexcept {
    const auto until = std::chrono::steady_clock::now() + std::chrono::nanoseconds{nanoseconds};
    do
      for (int i = 0; i != 4; ++i) pause();
    while (std::chrono::steady_clock::now() < until);
  }

 private:
  int rounds_ = 0;
};

}  // namespace weft::detail

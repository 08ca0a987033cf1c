// Waiting for another thread that is a few instructions from done: a few pauses, then the processor is given away.
#pragma once

#include <sched.h>

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

  /// A few cycles, for who shares a core with another thread.
  static void pause() noexcept {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }

 private:
  int rounds_ = 0;
};

}  // namespace weft::detail

// The limit of a mutex: one word, which is free, held, or the newest of those that wait; each of them lies in its own
// frame. Whoever releases it gives it to the newest and runs that one there and then. Nobody can be told to stop, and who
// waits longest may be served last.
#pragma once

#include <atomic>
#include <coroutine>
#include <cstdint>

namespace handwritten {

class lock {
 public:
  auto take() noexcept { return waiter{*this}; }

  void give_back() noexcept {
    auto seen = held;
    if (word_.compare_exchange_strong(seen, free,
                                      std::memory_order_release,     // -> section
                                      std::memory_order_acquire)) {  // park: who waits can be read
      return;
    }
    // Only the holder takes anybody out, so what the newest points to stays as it is.
    auto* newest = reinterpret_cast<waiter*>(seen);
    while (!word_.compare_exchange_weak(seen, newest->older,
                                        std::memory_order_acq_rel,     // -> section, and park of who is left
                                        std::memory_order_acquire)) {  // park
      newest = reinterpret_cast<waiter*>(seen);
    }
    newest->self.resume();
  }

 private:
  struct waiter {
    lock& of;
    std::uintptr_t older = held;
    std::coroutine_handle<> self{};

    bool await_ready() const noexcept {
      auto seen = free;
      return of.word_.compare_exchange_strong(seen, held,
                                              std::memory_order_acquire,   // section ->
                                              std::memory_order_relaxed);  // lost: await_suspend() looks again
    }
    // True: it waits, and may run on another thread already.
    bool await_suspend(std::coroutine_handle<> waits) noexcept {
      self = waits;
      auto seen = of.word_.load(std::memory_order_relaxed);
      for (;;) {
        older = seen;
        const auto next = seen == free ? held : reinterpret_cast<std::uintptr_t>(this);
        if (of.word_.compare_exchange_weak(seen, next,
                                           std::memory_order_acq_rel,     // section -> where it was free; -> park
                                           std::memory_order_relaxed)) {  // tried again
          return next != held;
        }
      }
    }
    void await_resume() const noexcept {}
  };

  static constexpr std::uintptr_t free = 0, held = 1;

  // free, held, or the address of the newest waiter. By all.
  //   edge section   what was done under it   ->  who has it next
  //   edge park      a waiter's members       ->  the holder that takes it out
  std::atomic<std::uintptr_t> word_{free};
};

}  // namespace handwritten

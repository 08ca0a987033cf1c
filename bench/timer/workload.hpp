// timer: a timer that is due in five seconds is armed and cancelled, as that of a time limit mostly is. --size says what is
// beside it: so many that are armed for the next minute; 1: none. 2: each is armed by one thread and cancelled by another,
// a thousand at a time. One item is a timer, armed and cancelled. The time point is computed once, where a library takes one.
#pragma once

#include "../harness/harness.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <random>
#include <thread>

namespace bench {

inline constexpr std::size_t timer_rounds = 10'000, timer_batch = 1000;
inline constexpr std::chrono::seconds timer_limit{5};
inline constexpr std::size_t by_another_thread = 2;

inline std::size_t timers_beside(std::size_t size) { return size > by_another_thread ? size : 0; }

/// When each of those beside is due, later than any that is measured.
inline std::chrono::milliseconds due_beside() {
  static std::minstd_rand random{1};
  return std::chrono::milliseconds{10'000 + random() % 60'000};
}

/// A thread that calls `cancel()` each time that it is asked to.
template <class Cancel>
class canceller {
 public:
  explicit canceller(Cancel cancel) : cancel_{cancel}, thread_{[this] { run(); }} {}
  canceller(const canceller&) = delete;
  ~canceller() {
    turn_.store(over, std::memory_order_release);
    thread_.join();
  }

  /// Returns when it has been called.
  void operator()() noexcept {
    turn_.store(there, std::memory_order_release);
    while (turn_.load(std::memory_order_acquire) != here) std::this_thread::yield();
  }

 private:
  enum turn { here, there, over };
  void run() {
    for (;;) {
      turn now;
      while ((now = turn_.load(std::memory_order_acquire)) == here) std::this_thread::yield();
      if (now == over) return;
      cancel_();
      turn_.store(here, std::memory_order_release);
    }
  }

  Cancel cancel_;
  std::atomic<turn> turn_{here};
  std::thread thread_;
};

}  // namespace bench

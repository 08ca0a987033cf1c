// A timer that checks every 5 ms, while workers are busy, whether some thread still looks after sockets: the worker that waited
// for them may have been woken and run one job for long. While all workers sleep the timer is not armed.
#pragma once

#include <atomic>
#include <chrono>

#include <weft/clock.hpp>

namespace weft::detail {

class pool_core;  // NOLINT(cppcoreguidelines-virtual-class-destructor): it is final

class io_guard : timer {
 public:
  io_guard() noexcept : timer{look} {}

  /// Called before any descriptor is made. For a single worker the timer is never armed: no other worker could look.
  void begin(pool_core& workers) noexcept {
    if (is_alone(workers)) is_armed_.store(true, std::memory_order_relaxed);  // no other thread has it yet
    workers_.store(&workers, std::memory_order_release);                      // -> pool (no model: it is written once)
  }
  /// Called when the workers' threads have ended, before the pool is destroyed.
  void end() noexcept;
  /// By a worker that has woken up and left the set of idle workers, so that it waits for no sockets now. Arms the timer.
  void has_left() noexcept {
    if (!is_armed_.exchange(true, std::memory_order_acq_rel)) arm();  // <-, -> left (no model: see `is_armed_`)
  }
  /// Null: it has not begun.
  pool_core* workers() const noexcept {
    return workers_.load(std::memory_order_acquire);  // <- pool (no model: it is written once)
  }

 protected:
  ~io_guard() = default;
  /// Called by the timer. Whether to wake an idle worker, to look after sockets.
  virtual bool needs_one() noexcept = 0;

 private:
  static constexpr std::chrono::milliseconds every{5};
  static bool is_alone(const pool_core& workers) noexcept;
  static void look(timer& self) noexcept;
  void arm() noexcept;

  std::atomic<pool_core*> workers_{nullptr};  // edge pool: the pool  ->  who looks at it
  // Whether the timer is armed, or about to be; always true for a single worker, so that it never is.
  //   edge left  a worker has left the set of idle workers  ->  the timer that finds `true` and then sees that not all workers
  //              sleep. No model: both sides exchange the word
  std::atomic<bool> is_armed_{false};
};

}  // namespace weft::detail

// A timer that checks every 5 ms, while workers are busy, whether some thread still looks after sockets: the worker that waited
// for them may have been woken and run one job for long. While all workers sleep the timer is not armed.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include <weft/clock.hpp>

namespace weft::detail {

class pool_core;  // NOLINT(cppcoreguidelines-virtual-class-destructor): it is final

class io_guard : timer {
 public:
  io_guard() noexcept : timer{look} {}

  /// Called before any descriptor is made. For a single worker the timer is never armed: no other worker could look.
  void begin(pool_core& workers) noexcept {
    if (is_alone(workers)) begin_alone();
    workers_.store(&workers, std::memory_order_release);  // -> pool (no model: it is written once)
  }
  /// Instead of begin(), where one thread looks after sockets and there is no pool.
  void begin_alone() noexcept { state_.store(armed, std::memory_order_relaxed); }  // no other thread has it yet
  /// Called when the workers' threads have ended, before the pool is destroyed.
  void end() noexcept;
  /// By a worker that has woken up and left the set of idle workers, so that it waits for no sockets now. Arms the timer.
  void has_left() noexcept {
    const state was = state_.exchange(armed_since_left,
                                      std::memory_order_acq_rel);  // <-, -> left (no model: see `state_`)
    if (was == off) arm();
  }
  /// Null: it has not begun.
  pool_core* workers() const noexcept {
    return workers_.load(std::memory_order_acquire);  // <- pool (no model: it is written once)
  }

 protected:
  ~io_guard() = default;
  /// Called by the timer. Whether to wake an idle worker, to look after sockets. `left_lately`: a worker has left the set of idle
  /// workers since the timer looked last.
  virtual bool needs_one(bool left_lately) noexcept = 0;

 private:
  static constexpr std::chrono::milliseconds every{5};
  static bool is_alone(const pool_core& workers) noexcept;
  static void look(timer& self) noexcept;
  void arm() noexcept;

  std::atomic<pool_core*> workers_{nullptr};  // edge pool: the pool  ->  who looks at it
  // Whether the timer is armed, or its function runs: nobody else arms it then, so that end(), which waits for that function, waits
  // for the one that runs. And whether a worker has left the set of idle workers since the function last looked at that. Never off
  // where one thread is alone, so that it never is armed.
  //   edge left  a worker has left the set of idle workers  ->  the function that finds `armed_since_left`, and then sees that not
  //              all workers sleep. No model: both sides exchange the word
  enum state : std::uint8_t { off, armed, armed_since_left };
  std::atomic<state> state_{off};
};

}  // namespace weft::detail

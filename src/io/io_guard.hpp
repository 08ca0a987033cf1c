// Looks every few milliseconds, while workers are busy, whether sockets are reached although a worker computes: one that has
// left its wait for them may be at one job for long. While all workers sleep, so does it.
#pragma once

#include <atomic>
#include <chrono>

#include <weft/clock.hpp>

namespace weft::detail {

class pool_core;  // NOLINT(cppcoreguidelines-virtual-class-destructor): it is final

class io_guard : timer {
 public:
  io_guard() noexcept : timer{look} {}

  /// Before there is a descriptor. Of one worker alone, beside which no other can look, it never looks.
  void begin(pool_core& workers) noexcept {
    if (is_alone(workers)) looks_.store(true, std::memory_order_relaxed);  // before anybody else has it
    workers_.store(&workers, std::memory_order_release);                   // -> pool (no model: it is written once)
  }
  /// When the workers have ended, before they go.
  void end() noexcept;
  /// By a worker that has left its sleep, and the set of idle workers, and waits for no sockets meanwhile.
  void has_left() noexcept {
    if (!looks_.exchange(true, std::memory_order_acq_rel)) arm();  // <-, -> left (no model: see it)
  }
  /// Null: it has not begun.
  pool_core* workers() const noexcept {
    return workers_.load(std::memory_order_acquire);  // <- pool (no model: it is written once)
  }

 protected:
  ~io_guard() = default;
  /// By the clock. Whether an idle worker is to be woken, to look after sockets.
  virtual bool needs_one() noexcept = 0;

 private:
  static constexpr std::chrono::milliseconds every{5};
  static bool is_alone(const pool_core& workers) noexcept;
  static void look(timer& self) noexcept;
  void arm() noexcept;

  std::atomic<pool_core*> workers_{nullptr};  // edge pool: the pool  ->  who looks at it
  //   edge left  a worker has left the set of idle workers  ->  who finds it true, and looks whether all are asleep. No model:
  //              both exchange it
  std::atomic<bool> looks_{false};
};

}  // namespace weft::detail

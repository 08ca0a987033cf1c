// Timers: the nodes that a clock fires. Only programs with a clock of their own need them; clock.hpp says what a timer and its
// clock may expect of each other. Everything else uses sleep_for() and the like.
#pragma once

#include <chrono>
#include <cstdint>
#include <weft/detail/base/atomic.hpp>

namespace weft {

/// A node that fires once, at a time point. It belongs to what waits for that time; the clock links the armed ones.
///
/// Threads   after arm() all members belong to the clock, until the timer fires or cancel() has returned.
/// Lifetime  before its owner destroys it, it was cancelled or has fired.
class timer {
 public:
  using time_point = std::chrono::steady_clock::time_point;
  using fire_function = void (*)(timer&) noexcept;  ///< called by a clock while it holds no lock

  /// `when_due` is called with this timer when it fires.
  explicit timer(fire_function when_due) noexcept : fire{when_due} {}
  timer(const timer&) = delete;
  timer& operator=(const timer&) = delete;

  const fire_function fire;  ///< called once for each arm(); the timer may be gone when it returns

  time_point when{};       ///< when it fires; set by arm()
  timer* child = nullptr;  ///< a link, for the clock to use as it likes
  timer* next = nullptr;   ///< as `child`
  union {
    timer* prev = nullptr;  ///< as `child`
    timer** at;             ///< as `child`: the pointer to this timer
  };
  bool armed = false;  ///< for other clocks, such as virtual_clock; the real one uses `home`
  /// Used by the real clock: in which of its places the timer is. Written under the lock of that place; relaxed, since a reader
  /// that finds a place reads it again under that lock.
  detail::atomic<std::uint16_t> home{0};
  std::uint32_t armed_by = 0;  ///< used by the real clock: the number of the thread that armed it

 protected:
  ~timer() = default;  // its owner's class derives from it
};

}  // namespace weft

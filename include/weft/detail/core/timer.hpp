// What a clock keeps for whoever wants to be told at a time point. Part of clock.hpp, which says what it goes through.
#pragma once

#include <chrono>
#include <cstdint>
#include <weft/detail/base/atomic.hpp>

namespace weft {

/// What a clock keeps for whoever wants to be told at a time point.
class timer {
 public:
  using time_point = std::chrono::steady_clock::time_point;
  using fire_function = void (*)(timer&) noexcept;

  explicit timer(fire_function when_due) noexcept : fire{when_due} {}
  timer(const timer&) = delete;
  timer& operator=(const timer&) = delete;

  const fire_function fire;  // by the clock; may end the timer

  // For the clock, from arm() until it fires or was cancelled.
  time_point when{};
  timer* child = nullptr;
  timer* next = nullptr;
  union {
    timer* prev = nullptr;
    timer** at;  // what leads to it
  };
  bool armed = false;                     // for a clock of a test's own, as virtual_clock; the real one goes by `home`
  detail::atomic<std::uint16_t> home{0};  // where it is. Written under the lock of that; relaxed: read again under it
  std::uint32_t armed_by = 0;             // what tells the thread

 protected:
  ~timer() = default;  // its owner cancels it first
};

}  // namespace weft

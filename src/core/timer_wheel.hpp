// Armed timers by about their time: a hierarchical timing wheel. To add one and to remove one take a few instructions, however
// many there are. Locks nothing: see timer_store.hpp.
//
// Time is cut into ticks of 2^20 ns, about a millisecond; a tick has eight digits of six bits, so that 48 bits hold all that
// a time_point can. The wheel stands at a tick. A timer lies at the level of the highest digit in which its tick differs
// from that, in the slot of its own digit:
//
//   - what lies at one level comes before all that lies at a higher one, and in one level the slots are in order;
//   - a timer stays where it lies while the wheel moves on, until it reaches the first tick of the timer's slot.
//
// Then advance() gives away those that are due by the tick that is asked for, and puts the others into lower levels. So a
// timer moves once a level at most, and most are removed before.
//
// Rejected: a wheel that never moves timers, as the Linux kernel's: one that fires no later than 1/64 of the delay needs ten
// times the slots, and gives up the order in which timers fire. Slots of 32 µs, so that no heap is needed beside the wheel:
// the same, and it wakes the clock more often for what has been cancelled.
//
// Source: Varghese and Lauck, "Hashed and hierarchical timing wheels", SOSP (1987).
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <weft/detail/base/atomic.hpp>
#include <weft/timer.hpp>

namespace weft::detail {

class timer_wheel {
 public:
  using tick = std::uint64_t;
  static constexpr unsigned nanosecond_bits = 20, digit_bits = 6, levels = 8;
  static constexpr tick never = std::numeric_limits<tick>::max();

  /// The tick that a time lies in. Time begins at 0: what is earlier is due.
  static tick tick_of(timer::time_point when) noexcept {
    const auto since = std::chrono::nanoseconds{when.time_since_epoch()}.count();
    return since > 0 ? static_cast<tick>(since) >> nanosecond_bits : 0;
  }
  static timer::time_point begin_of(tick t) noexcept {
    return timer::time_point{std::chrono::nanoseconds{static_cast<std::int64_t>(t << nanosecond_bits)}};
  }

  constexpr timer_wheel() = default;
  timer_wheel(const timer_wheel&) = delete;

  /// Where it stands: a timer of that tick, or an earlier one, is due, and not for the wheel.
  tick position() const noexcept { return position_; }

  /// Adds a timer whose tick lies behind the position. Returns the first tick of its slot: until then, advance() has nothing
  /// to do with it.
  tick add(timer& one) noexcept {
    const tick when = tick_of(one.when);
    const unsigned level = level_of(when ^ position_);
    const unsigned shift = level * digit_bits;
    const unsigned digit = static_cast<unsigned>(when >> shift) % slots;
    link(one, slots_[level][digit]);
    occupied_[level] |= std::uint64_t{1} << digit;
    return when >> shift << shift;
  }

  void remove(timer& one) noexcept {
    timer* const next = one.next;
    *one.at = next;
    if (next != nullptr)
      next->at = one.at;
    else
      note_as_empty(one.at);
  }

  /// The first tick at which advance() has something to do; never: there is no timer.
  tick first() const noexcept {
    if (moving_ != nullptr) return position_;
    for (unsigned level = 0; level != levels; ++level)
      if (occupied_[level] != 0) return begin_of_slot(level, first_of(level));
    return never;
  }

  /// Moves on to the tick `to`, and calls `due(timer)` with those of that tick and earlier ones, after it has removed each.
  /// Looks at `most` timers. True: it is there; false: to be called again.
  template <class Due>
  bool advance(tick to, unsigned most, Due&& due) noexcept {
    for (;;) {
      while (moving_ != nullptr) {
        if (most-- == 0) return false;
        timer& one = *moving_;
        moving_ = one.next;
        if (moving_ != nullptr) moving_->at = &moving_;
        if (tick_of(one.when) <= to)
          due(one);
        else
          add(one);
      }
      const unsigned level = lowest_level();
      if (level == levels) break;
      const unsigned digit = first_of(level);
      const tick begin = begin_of_slot(level, digit);
      if (begin > to) break;
      position_ = begin;
      occupied_[level] &= ~(std::uint64_t{1} << digit);
      moving_ = std::exchange(slots_[level][digit], nullptr);
      moving_->at = &moving_;
    }
    if (position_ < to) position_ = to;
    return true;
  }

  /// Removes all timers, and calls `gone(timer)` with each.
  template <class Gone>
  void clear(Gone&& gone) noexcept {
    clear(moving_, gone);
    for (unsigned level = 0; level != levels; ++level) {
      if (std::exchange(occupied_[level], 0) == 0) continue;
      for (timer*& first : slots_[level]) clear(first, gone);
    }
  }

 private:
  static constexpr unsigned slots = 1u << digit_bits;

  static unsigned level_of(tick differs) noexcept {
    return (static_cast<unsigned>(std::bit_width(differs)) - 1) / digit_bits;
  }
  unsigned first_of(unsigned level) const noexcept { return static_cast<unsigned>(std::countr_zero(occupied_[level])); }
  unsigned lowest_level() const noexcept {
    unsigned level = 0;
    while (level != levels && occupied_[level] == 0) ++level;
    return level;
  }
  // The higher digits are those of the position.
  tick begin_of_slot(unsigned level, unsigned digit) const noexcept {
    const unsigned shift = level * digit_bits;
    return (position_ >> shift >> digit_bits << digit_bits | digit) << shift;
  }

  static void link(timer& one, timer*& first) noexcept {
    one.next = first;
    if (first != nullptr) first->at = &one.next;
    one.at = &first;
    first = &one;
  }
  // `at` has led to the last timer of a list: if it is a slot, that is empty now.
  void note_as_empty(timer** at) noexcept {
    const auto index =
        (reinterpret_cast<std::uintptr_t>(at) - reinterpret_cast<std::uintptr_t>(slots_)) / sizeof(timer*);
    if (index < std::size_t{levels} * slots) occupied_[index / slots] &= ~(std::uint64_t{1} << index % slots);
  }
  template <class Gone>
  static void clear(timer*& first, Gone& gone) noexcept {
    while (first != nullptr) {
      timer& one = *std::exchange(first, first->next);
      gone(one);
    }
  }

  plain<tick> position_ = 0;
  timer* moving_ = nullptr;           // those of the slot at the position that advance() has still to look at
  std::uint64_t occupied_[levels]{};  // a bit for each slot that is not empty
  timer* slots_[levels][slots]{};
};

}  // namespace weft::detail

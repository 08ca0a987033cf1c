// A biased lock whose bias comes and goes. Its owner, for ever the same, takes it nearly always; to it the lock then costs two
// plain stores and a load, and to another thread a fence on all processors. When another thread has taken it, the owner makes
// an ordinary fence each time, and others need no more than that, until the owner has taken it `most_in_a_row` times since:
// by then its fences have cost as much as the one on all processors that taking the bias away again will cost.
//
//   owner    sets its flag, then looks whether another thread has taken the lock, or has taken the bias; if so, it makes a
//            fence and looks again, and while the lock is taken it clears its flag and waits
//   another  takes the lock and the bias, makes a fence (on all processors, if there was a bias), then waits until the
//            owner's flag is clear
//
// Of the two writes that precede the two reads, one is seen, so both are never inside.
//
// Rejected: biased_lock, which makes a fence on all processors each time that another thread takes it: 130 to 400 ns, where
// tasks that migrate cancel a timer of another worker at each step. learning_lock: its bias is gone for good after a few
// changes, and a clock that looks every few seconds uses them up.
#pragma once

#include <atomic>
#include <cstdint>
#include <weft/detail/base/atomic.hpp>
#include <weft/detail/base/config.hpp>

#include "base/fence.hpp"
#include "base/spin.hpp"

namespace weft::detail {

class rebiasing_lock {
 public:
  explicit rebiasing_lock(std::uint32_t most_in_a_row = 64) noexcept : most_in_a_row_{most_in_a_row} {}

  /// By the owner.
  void enter() noexcept {
    inside_.store(true, std::memory_order_relaxed);  // the fence has the order
    free_fence();
    if (taken_.load(std::memory_order_relaxed) != 0) [[unlikely]]  // 0 was written by the owner, who had the lock then
      enter_with_care();
  }
  void leave() noexcept { inside_.store(false, std::memory_order_release); }  // -> owned

  /// By any other thread.
  void lock() noexcept {
    spin_wait wait;
    std::uint8_t before;
    for (;;) {
      before =
          taken_.fetch_or(taken | without_bias, std::memory_order_acquire);  // <- lent (no model: the fence has it)
      if ((before & taken) == 0) break;
      while ((taken_.load(std::memory_order_relaxed) & taken) != 0) wait.once();  // asked again at once
    }
    if ((before & without_bias) == 0)
      heavy_fence();
    else
      full_fence();
    while (inside_.load(std::memory_order_acquire)) wait.once();  // <- owned
    in_a_row_ = 0;
  }
  void unlock() noexcept { taken_.store(without_bias, std::memory_order_release); }  // -> lent

  /// In a forked child, by the thread that has the lock: where the owner is another thread, it is in the parent. It may have
  /// set its flag at the time of the fork, to find the lock taken, and would never clear it here.
  void owner_is_gone() noexcept { inside_.store(false, std::memory_order_relaxed); }  // there is no other thread

 private:
  static constexpr std::uint8_t taken = 1, without_bias = 2;

  WEFT_SELDOM void enter_with_care() noexcept {
    full_fence();
    spin_wait wait;
    while ((taken_.load(std::memory_order_acquire) & taken) != 0) {  // <- lent
      // Carries the use before this one. In C++11, by which relacy goes, a relaxed store would carry it, too.
      inside_.store(false, std::memory_order_release);                            // -> owned (no model: as said above)
      while ((taken_.load(std::memory_order_relaxed) & taken) != 0) wait.once();  // asked again below
      inside_.store(true, std::memory_order_relaxed);                             // ordered by the fence below
      full_fence();
    }
    in_a_row_ = in_a_row_ + 1;
    if (in_a_row_ >= most_in_a_row_ && light_fences_are_free()) transition_to_biased();
  }

  // By the owner, inside. Whoever takes the lock meanwhile keeps the bias away.
  void transition_to_biased() noexcept {
    std::uint8_t expected = without_bias;
    taken_.compare_exchange_strong(expected, 0,
                                   std::memory_order_relaxed,   // the owner needs no edge to itself, and others
                                   std::memory_order_relaxed);  // read what it changed behind its flag
  }

  //   edge owned  what the owner changed        ->  the next thread that has the lock
  //   edge lent   what another thread changed   ->  the owner, and the next thread that has the lock
  atomic<bool> inside_{false};
  // `taken`: by another thread. `without_bias`: the owner makes a fence, and so by this bit takes the slow path.
  atomic<std::uint8_t> taken_{light_fences_are_free() ? std::uint8_t{0} : without_bias};
  plain<std::uint32_t> in_a_row_ = 0;  // how often the owner has taken it with care, under the lock
  const std::uint32_t most_in_a_row_;
};

}  // namespace weft::detail

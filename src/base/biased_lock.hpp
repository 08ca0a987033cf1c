// A biased lock with one owner for ever, which takes it a hundred million times a second, while others take it now and
// then. To the owner it costs two plain stores and a load, to the others a fence on all processors.
//
//   owner    sets its flag, then looks whether another thread has taken the lock; if so, it clears the flag again and waits
//   another  takes the lock, has the fence made, then waits until the owner's flag is clear
//
// Of the two writes that precede the two reads, one is seen, so both are never inside. Sections are a few instructions.
//
// Rejected: to refuse others while the owner is inside: an owner that takes the lock all the time would never be stolen from.
#pragma once

#include <atomic>
#include <cstdint>
#include <weft/detail/base/atomic.hpp>
#include <weft/detail/base/config.hpp>

#include "base/fence.hpp"
#include "base/spin.hpp"

namespace weft::detail {

class biased_lock {
 public:
  /// By the owner.
  void enter() noexcept {
    inside_.store(true, std::memory_order_relaxed);  // the fence has the order
    free_fence();
    if (taken_.load(std::memory_order_acquire) != 0) [[unlikely]]  // <- lent
      enter_with_care();
  }
  void leave() noexcept { inside_.store(false, std::memory_order_release); }  // -> owned

  /// By any other thread. False: another one has it, or the owner stays inside for too long.
  bool try_lock() noexcept {
    if ((taken_.load(std::memory_order_relaxed) & taken) != 0 ||           // asked again at once
        (taken_.fetch_or(taken, std::memory_order_acquire) & taken) != 0)  // <- lent (no model: the fence has it, too)
      return false;
    heavy_fence();
    spin_wait wait;
    for (int rounds = 0; inside_.load(std::memory_order_acquire); ++rounds) {  // <- owned
      if (rounds == most_rounds) {
        unlock();
        return false;
      }
      wait.once();
    }
    return true;
  }
  void unlock() noexcept { taken_.fetch_and(with_fences, std::memory_order_release); }  // -> lent

 private:
  static constexpr int most_rounds = 30;  // an owner that takes longer has lost its processor
  static constexpr std::uint8_t taken = 1, with_fences = 2;

  WEFT_SELDOM void enter_with_care() noexcept {
    light_fence();
    if ((taken_.load(std::memory_order_acquire) & taken) == 0) return;  // <- lent
    spin_wait wait;
    do {
      inside_.store(false, std::memory_order_relaxed);                            // nothing was changed
      while ((taken_.load(std::memory_order_relaxed) & taken) != 0) wait.once();  // asked again below
      inside_.store(true, std::memory_order_relaxed);                             // ordered by the fence below
      light_fence();
    } while ((taken_.load(std::memory_order_acquire) & taken) != 0);  // <- lent
  }

  //   edge owned  what the owner changed          ->  the next thread that has the lock
  //   edge lent   what another thread changed     ->  the owner, and the next thread that has the lock
  atomic<bool> inside_{false};
  // `taken`: by another thread. `with_fences`: the owner's fence is not free, and by this bit it always takes the slow path.
  atomic<std::uint8_t> taken_{light_fences_are_free() ? std::uint8_t{0} : with_fences};
};

}  // namespace weft::detail

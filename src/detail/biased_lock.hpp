// A lock that its owner takes a hundred million times a second, and others now and then: for the owner it is two plain
// stores and a load, for the others a fence on all processors.
//
//   owner    says that it is inside, then looks whether the lock is taken; if so, it steps out again and waits
//   another  takes the lock, has the fence made, then waits until the owner is not inside
//
// Of the two writes that precede the two reads, one is seen, so both are never in. Sections are a few instructions.
//
// Rejected: an owner that turns others away: one that is always at it would never be stolen from.
#pragma once

#include <atomic>
#include <weft/detail/atomic.hpp>
#include <weft/detail/config.hpp>

#include "detail/fence.hpp"
#include "detail/spin.hpp"

namespace weft::detail {

class biased_lock {
 public:
  /// By the owner.
  void enter() noexcept {
    inside_.store(true, std::memory_order_relaxed);  // the fence has the order
    light_fence();
    if (taken_.load(std::memory_order_acquire)) [[unlikely]]  // <- lent
      wait_until_given_back();
  }
  void leave() noexcept { inside_.store(false, std::memory_order_release); }  // -> owned

  /// By any other thread. False: somebody else has it, or the owner does not come out.
  bool try_lock() noexcept {
    if (taken_.load(std::memory_order_relaxed) || taken_.exchange(true, std::memory_order_acquire))
      return false;  // <- lent
    heavy_fence();
    spin_wait wait;
    for (int rounds = 0; inside_.load(std::memory_order_acquire); ++rounds) {  // <- owned
      if (rounds == patience) {
        unlock();
        return false;
      }
      wait.once();
    }
    return true;
  }
  void unlock() noexcept { taken_.store(false, std::memory_order_release); }  // -> lent

 private:
  static constexpr int patience = 30;  // an owner that takes longer has lost its processor

  WEFT_SELDOM void wait_until_given_back() noexcept {
    spin_wait wait;
    do {
      inside_.store(false, std::memory_order_relaxed);             // nothing was changed
      while (taken_.load(std::memory_order_relaxed)) wait.once();  // asked again below
      inside_.store(true, std::memory_order_relaxed);              // as in enter()
      light_fence();
    } while (taken_.load(std::memory_order_acquire));  // <- lent
  }

  //   edge owned  what the owner changed          ->  the next thread that has the lock
  //   edge lent   what whoever had it changed     ->  the owner, and the next one
  atomic<bool> inside_{false};
  atomic<bool> taken_{false};
};

}  // namespace weft::detail

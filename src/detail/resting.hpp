// How a pool with more threads than it needs has some of them rest, and how the thread that decides about that sleeps while
// there is nothing to decide. Both are two sides that each write, have a fence made, and read, as those of idle_set.hpp.
//
//   who rests     (or goes) is none of the workers any more; heavy fence; reads whether there is a job that nobody else
//                 would see to
//   poster        puts a job somewhere; light fence; reads who sleeps, and for a job for one alone, whether that one rests
//
//   who steers    says that it naps; heavy fence; reads whether all workers sleep. If so: it naps until it is woken
//   worker        was woken, so that not all sleep; light fence; reads whether who steers naps, and wakes it
//
// Rejected: ending threads that are not needed, and starting others (some 20 us each, and it may fail when work waits).
#pragma once

#include <atomic>
#include <chrono>
#include <weft/detail/atomic.hpp>

#include "detail/fence.hpp"
#include "detail/idle_set.hpp"
#include "detail/parker.hpp"

namespace weft::detail {

/// By a thread that takes the place of a worker which nobody had, and looks for work then.
inline void come_to(idle_set& all) noexcept {
  all.come();
  heavy_fence();  // (no model: the set's lock orders what there is to see, too)
}

/// By that thread, which leaves nothing where nobody takes from.
template <class SeeToOthers>
void go_from(idle_set& all, SeeToOthers see_to_others) {
  all.go();
  heavy_fence();  // (no model: as above)
  see_to_others();
}

/// By a worker that is awake, does not search, and has no job, nor anything in its line. Returns when it has been
/// recalled, or at once if enough rest.
template <class Seat, class SeeToOthers, class HasOwn, class Doze>
void rest_until_recalled(idle_set& all, Seat& mine, SeeToOthers see_to_others, HasOwn has_own, Doze doze) {
  mine.sleeps.prepare();
  if (!all.rest(mine)) return;
  heavy_fence();
  see_to_others();
  if (has_own() && all.recall(mine)) return;
  do {
    doze();
    mine.sleeps.prepare();  // before it looks: who recalls it later wakes it later, too
  } while (all.still_rests(mine));
}

/// Where the thread sleeps that steers.
class steering_bed {
 public:
  using time_point = parker::time_point;

  /// By that thread: until then, or, if it may nap and no worker is awake, until one is. `over()`: it is not to sleep.
  template <class Over>
  void sleep(const idle_set& workers, bool may_nap, time_point until, Over over) {
    bed_.prepare();
    if (may_nap) naps_.store(true, std::memory_order_relaxed);  // the fence has the order
    heavy_fence();
    if (!over()) bed_.commit(may_nap && workers.all_inside() ? time_point::max() : until);
    if (may_nap) naps_.store(false, std::memory_order_relaxed);  // its own; who reads it late wakes it for nothing
  }

  /// By a worker that was woken, or has come.
  void notice() noexcept {
    light_fence();
    if (naps_.load(std::memory_order_relaxed)) [[unlikely]]  // the fence has the order
      wake();
  }

  /// Any thread.
  void wake() noexcept { bed_.wake(); }

 private:
  futex_parker bed_;
  atomic<bool> naps_{false};  // it sleeps without a time. A hint but for the two fences
};

}  // namespace weft::detail

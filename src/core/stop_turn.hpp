// Stops which waits forward to their children, as the waits of scopes and joins do. Each such stop is a call inside the call
// that stopped the parent. A stop at nesting depth 16 is deferred: it goes into the worker's list, and the outermost of these
// calls on the thread runs it. Whoever defers the stop of a wait keeps that wait from ending until then.
#pragma once

#include <utility>
#include <weft/detail/core/waiter.hpp>

#include "core/claim.hpp"
#include "core/worker.hpp"

namespace weft::detail {

/// One such call.
class stop_turn {
 public:
  explicit stop_turn(worker& here) noexcept : here_{here} { ++here.nested_stops; }
  stop_turn(const stop_turn&) = delete;
  ~stop_turn() {
    if (here_.nested_stops == 1)
      while (waiter* const one = here_.deferred_stops) {
        here_.deferred_stops = one->next;
        stop_here::tell(*one);
      }
    --here_.nested_stops;
  }

  static bool must_defer(const worker& here) noexcept { return here.nested_stops >= deepest_stop; }
  static void defer(worker& here, waiter& one) noexcept { one.next = std::exchange(here.deferred_stops, &one); }

 private:
  worker& here_;
};

/// Counts one more of the parts that a wait is for. False: none is left, so the wait has ended, and nothing was counted.
template <class Count>
bool count_one_more(atomic<Count>& pending) noexcept {
  Count now = pending.load(std::memory_order_relaxed);  // a guess: the exchange decides
  while (now != 0)
    if (pending.compare_exchange_weak(now, now + 1, std::memory_order_relaxed,  // what it counts carries nothing yet
                                      std::memory_order_relaxed))               // tried again
      return true;
  return false;
}

}  // namespace weft::detail

// Stops that waits forward to what is below them, as those of scopes and joins do: each is a call inside the one that stopped
// what is around it. Sixteen deep they are put into the worker's list, and the outermost call on the thread comes to them.
// Who puts a wait off keeps it from ending until then.
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
      while (waiter* const one = here_.stops_put_off) {
        here_.stops_put_off = one->next;
        stop_here::tell(*one);
      }
    --here_.nested_stops;
  }

  static bool is_put_off(const worker& here) noexcept { return here.nested_stops >= deepest_stop; }
  static void put_off(worker& here, waiter& one) noexcept { one.next = std::exchange(here.stops_put_off, &one); }

 private:
  worker& here_;
};

/// Counts one more of those that somebody waits for; false: there is none left. What is counted brings nothing.
template <class Count>
bool count_one_more(atomic<Count>& pending) noexcept {
  Count now = pending.load(std::memory_order_relaxed);  // a guess: the exchange decides
  while (now != 0)
    if (pending.compare_exchange_weak(now, now + 1, std::memory_order_relaxed, std::memory_order_relaxed)) return true;
  return false;
}

}  // namespace weft::detail

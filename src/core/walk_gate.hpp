// The list of waits whose children start on a thread, and the gate between that and a walk over all roots.
//
// A wait whose children are being started is in no root's slot yet, so a walk finds it in a list of its worker. The thread
// takes it out there when its parent has parked, or is about to go on, and passes the gate before the wait may go. A walk
// that has found it has been counted in by then.
#pragma once

#include <atomic>
#include <weft/detail/core/waiter.hpp>

#include "base/passing_gate.hpp"
#include "core/worker.hpp"

namespace weft::detail {

struct walk_gate {
  /// By a thread whose parent is about to start children: a walk finds them by this wait from now on.
  static void enter(worker& here, waiter& opening) noexcept {
    opening.prev = here.opening.load(std::memory_order_relaxed);  // the thread's own
    here.opening.store(&opening, std::memory_order_release);      // -> opens (no model: as declared)
  }
  /// By the same thread, of the one that it entered last.
  static void leave(worker& here, waiter& opening) noexcept {
    here.opening.store(opening.prev, std::memory_order_relaxed);  // what it leads to was entered before
    pass();
  }
  /// By a thread that has taken something else out of its worker which a walk may be reading.
  static void pass() noexcept { the_one.pass(); }

  [[gnu::visibility("hidden")]] static passing_gate the_one;  // hidden, so that it is read without a look where it lies
};

}  // namespace weft::detail

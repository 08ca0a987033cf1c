// One outcome, handed from whoever completes to the one who waits: what stands between a promise and its future, and
// between a callback and the task that awaits it.
//
// One word says how far the two have come.
//
//   word     means                                         who moves on from here
//   empty    no outcome, nobody waits                      completer -> ready; sleeper -> wait; stopper -> left
//   a wait   the sleeper is parked in it                   completer -> ready; stopper -> empty
//   left     a stop came between parking and entering      completer -> ready
//   ready    the outcome is there                          nobody
//
// Who may touch the outcome: the completer until it has moved the word to `ready`, the sleeper after it has seen that.
//
//   sleeper    finds nothing, parks, enters; if the outcome or a stop came between, it ends its own wait
//   completer  writes the outcome, completes, and ends the wait it found; touches nothing after that
//   stopper    has claimed the sleeper and takes the wait out of the word; if the completer was first the wait goes on,
//              since finish() is on its way: an outcome that was given is not lost
//
// Both races are decided by the word alone: nobody holds a lock, so nobody waits for one who is not running.
//
// Rejected: (a) a lock around word and waiter: a completer would spin while the sleeper parks. (b) Entering before
// parking: a completer would find a wait that nobody may end yet.
#pragma once

#include <atomic>
#include <cstdint>
#include <weft/detail/base/atomic.hpp>
#include <weft/detail/core/waiter.hpp>

namespace weft::detail {

class handover {
 public:
  handover() = default;
  handover(const handover&) = delete;

  /// Whether the outcome is there, to be read.
  bool is_ready() const noexcept { return word_.load(std::memory_order_acquire) == ready; }  // <- outcome

  /// By the completer, once, when the outcome is written. Not null: the wait to finish().
  [[nodiscard]] waiter* complete() noexcept {
    const std::uintptr_t before = word_.exchange(ready, std::memory_order_acq_rel);  // -> outcome, <- wait
    return before > ready ? reinterpret_cast<waiter*>(before) : nullptr;
  }

  /// The same by the sleeper's own thread, which has not entered. Relaxed: there is nobody to tell.
  void complete_here() noexcept { word_.store(ready, std::memory_order_relaxed); }

  enum class entry {
    waits,  // the completer or a stopper ends the wait, perhaps has: touch nothing
    ready,  // the outcome came first: the sleeper ends its wait
    left,   // a stop came first: the sleeper ends its wait as stopped
  };

  /// By the sleeper, parked in `one`.
  [[nodiscard]] entry enter(waiter& one) noexcept {
    std::uintptr_t found = empty;
    if (word_.compare_exchange_strong(found, reinterpret_cast<std::uintptr_t>(&one),
                                      std::memory_order_release,   // -> wait
                                      std::memory_order_acquire))  // <- outcome
      return entry::waits;
    return found == ready ? entry::ready : entry::left;
  }

  /// By a stopper that has claimed the sleeper of `one`. False: its wait is ended by the completer or by itself.
  [[nodiscard]] bool leave(waiter& one) noexcept {
    const std::uintptr_t entered = reinterpret_cast<std::uintptr_t>(&one);
    std::uintptr_t found = entered;
    for (;;) {
      // Nothing goes out by this: the outcome is not read here, and the sleeper itself carries what the stopper knows.
      if (word_.compare_exchange_weak(found, found == entered ? empty : left,
                                      std::memory_order_acquire,   // <- wait (no model: a frame is not watched)
                                      std::memory_order_relaxed))  // tried again, or given up
        return found == entered;
      if (found == ready) return false;
    }
  }

 private:
  static constexpr std::uintptr_t empty = 0, left = 1, ready = 2;  // a wait is aligned, so above these

  //   edge wait     the wait, and that its sleeper is parked  ->  the completer that ends it
  //                 all that the sleeper did with its frame   ->  the stopper that has it destroyed
  //   edge outcome  the outcome                               ->  the sleeper that reads it
  //
  // Watched by test/model/future_model.cpp.
  atomic<std::uintptr_t> word_{empty};
};

}  // namespace weft::detail

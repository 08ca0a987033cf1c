// Parking and claiming a wait, inline, for the sources of primitives: each send and each lock that waits does both, and a
// call would be a part of its cost. What they mean, and why the orders are as they are, is described in
// weft/detail/core/waiter.hpp.
#pragma once

#include <cstdint>
#include <weft/detail/core/waiter.hpp>

namespace weft::detail {

inline std::uint64_t sleeper::begin_wait(waiter& one, std::uint64_t word) noexcept {
  WEFT_EXPECTS((word & state_mask) == running, "a task waits for two things at once: only its own coroutine may await");
  const std::uint64_t ticket = (word & ticket_mask) + ticket_unit;
  one.sleeper_ = this;
  one.ticket_ = ticket;
  current_ = &one;
  return ticket;
}

// Parks a sleeper that is neither shielded nor told to stop, as most are: its word is a ticket and nothing else.
inline bool sleeper::park_now(waiter& one) noexcept {
  std::uint64_t word = word_.load(std::memory_order_relaxed);  // a guess: the exchange below decides
  if ((word & ~ticket_mask) == running) [[likely]] {
    const std::uint64_t ticket = begin_wait(one, word);
    if (word_.compare_exchange_strong(word, ticket | waiting, std::memory_order_release,  // -> park
                                      std::memory_order_relaxed)) [[likely]]              // looked at again
      return true;
  }
  return park_with_bits(one);
}

// Moves the state of wait `ticket`, whatever the stop bits are meanwhile. False: that wait is over, or not in `from`.
inline bool sleeper::move(std::uint64_t ticket, std::uint64_t from, std::uint64_t to) noexcept {
  std::uint64_t word = word_.load(std::memory_order_relaxed);  // a guess: the exchange below decides
  for (;;) {
    const std::uint64_t rest = word & (stop_bit | shield_bit);
    if ((word ^ rest) == (ticket | from)) [[likely]] {
      if (word_.compare_exchange_weak(word, ticket | rest | to,
                                      std::memory_order_acq_rel,   // -> wake, look, <- park, look
                                      std::memory_order_relaxed))  // tried again
        return true;
    } else if ((word ^ rest) == (ticket | tentative) && from == waiting) {  // a reader holds it, and gives it back soon
      word = decided(ticket);
    } else {
      return false;
    }
  }
}

// Sets the stop bit, by a stopper. Gives 0 if it was set before, else the word; if that is in the state `stopping`, the
// wait is claimed, and the stopper ends it.
inline std::uint64_t sleeper::set_stop_bit() noexcept {
  std::uint64_t word = word_.load(std::memory_order_relaxed);  // a guess: the exchange below decides
  for (;;) {
    if ((word & stop_bit) != 0) return 0;
    const bool waits = (word & (state_mask | shield_bit)) == waiting;
    const std::uint64_t told = waits ? (word & ~state_mask) | stop_bit | stopping : word | stop_bit;
    if (!word_.compare_exchange_weak(word, told,
                                     std::memory_order_acq_rel,   // -> asked, look, <- park, look
                                     std::memory_order_relaxed))  // tried again
      continue;
    if (!waits && claim_held_wait(word)) return (told & ~state_mask) | stopping;
    return told;
  }
}

// Nobody else writes the word: the stop bit is set, the sleeper sleeps, and a wait that has left is not ended by finish().
// No model fails where this store is relaxed: to relacy it continues the release sequence of the exchange before it, as it
// did in C++17.
inline void sleeper::has_left(std::uint64_t told) noexcept {
  word_.store(told & ~state_mask, std::memory_order_release);  // -> wake, asked (no model: as said above)
}

/// What waiter::try_claim() and sleeper::park() do, without the call.
struct claim_here {
  static bool try_claim(waiter& one) noexcept {
    std::uint64_t word = one.ticket_ | sleeper::waiting;  // neither told to stop nor shielded: mostly so
    if (one.sleeper_->word_.compare_exchange_strong(word, one.ticket_ | sleeper::running,
                                                    std::memory_order_acquire,  // <- park, look; `wake` is the post's
                                                    std::memory_order_relaxed)) [[likely]]  // looked at again
      return true;
    return one.claim_with_bits();
  }
  static bool park(sleeper& self, waiter& one) noexcept {
    if (const wait_watch* watch = wait_watch::now()) [[unlikely]]
      return self.park_watched(*watch, one, false);
    return self.park_now(one);
  }
};

/// The parts of sleeper::request_stop(), for a stopper of many sleepers.
struct stop_here {
  /// Claims the wait. False: there is none to be ended, or it has ended.
  static bool claim(sleeper& one) noexcept { return (one.set_stop_bit() & sleeper::state_mask) == sleeper::stopping; }

  // ---- of a sleeper whose wait is claimed

  static waiter& wait_of(const sleeper& claimed) noexcept { return *claimed.current_; }
  static bool can_be_fetched(const waiter& one) noexcept { return one.type_->fetch != nullptr; }
  /// Prefetches what the end of its wait touches first. Only where can_be_fetched().
  static void fetch(const sleeper& claimed) noexcept { claimed.current_->type_->fetch(*claimed.current_); }
  /// Has the wait leave. True: it has left, and the sleeper is to be woken as stopped.
  static bool leave(sleeper& claimed) noexcept { return claimed.leave_wait(told(claimed)); }
  /// Wakes a sleeper whose wait has left.
  static void wake(sleeper& one) noexcept;

  // ---- of a wait that has ended stopped

  static waiter& last_wait_of(const sleeper& one) noexcept { return *one.current_; }
  static void tell_causes(const waiter& one, cause_list& into) noexcept {
    if (one.type_->why != nullptr) one.type_->why(one, into);
  }

  // ---- of a wait whose stop was deferred

  static void tell(waiter& one) noexcept { one.type_->run_deferred_stop(one); }

  // ---- of several waits that are claimed

  static bool can_leave_together(const waiter& one) noexcept { return one.type_->leave_together != nullptr; }
  static bool is_like(const waiter& one, const waiter& other) noexcept {
    return one.type_->leave_together == other.type_->leave_together;
  }
  /// Has these leave. Only where can_leave_together().
  static void leave(waiter* const* those, std::size_t count) noexcept {
    for (std::size_t i = 0; i != count;) i += those[i]->type_->leave_together(those + i, count - i);
    for (std::size_t i = 0; i != count; ++i) those[i]->sleeper_->has_left(told(*those[i]->sleeper_));
  }

 private:
  // Relaxed: the caller has claimed the wait, with the stop bit set, so of the rest of the word nothing changes any more.
  static std::uint64_t told(const sleeper& claimed) noexcept { return claimed.word_.load(std::memory_order_relaxed); }
};

}  // namespace weft::detail

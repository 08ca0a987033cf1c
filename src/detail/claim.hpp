// Parking, and claiming a wait, for the sources of primitives: where each send and each lock passes, a call is a part of the
// price. What both mean, and why the orders are what they are: weft/detail/waiter.hpp.
#pragma once

#include <cstdint>
#include <weft/detail/waiter.hpp>

namespace weft::detail {

inline std::uint64_t sleeper::begin_wait(waiter& one, std::uint64_t word) noexcept {
  WEFT_EXPECTS((word & state_mask) == running, "a task waits for two things at once: only its own coroutine may await");
  const std::uint64_t ticket = (word & ticket_mask) + ticket_unit;
  one.sleeper_ = this;
  one.ticket_ = ticket;
  current_ = &one;
  return ticket;
}

// A sleeper that was not told to stop, and is not shielded, which most are: its word is a ticket and nothing else.
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
    } else if ((word ^ rest) == (ticket | tentative) && from == waiting) {  // decided in a moment, one way or the other
      word = decided(ticket);
    } else {
      return false;
    }
  }
}

/// What waiter::try_claim() and sleeper::park() do, without the call.
struct claim_here {
  static bool try_claim(waiter& one) noexcept {
    std::uint64_t word = one.ticket_ | sleeper::waiting;  // neither told to stop nor shielded: mostly so
    if (one.sleeper_->word_.compare_exchange_strong(word, one.ticket_ | sleeper::running,
                                                    std::memory_order_acq_rel,  // -> wake, look, <- park, look
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

}  // namespace weft::detail

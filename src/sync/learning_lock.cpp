#include <weft/detail/sync/learning_lock.hpp>

#include "base/spin.hpp"
#include "sync/lock_here.hpp"

namespace weft::detail {

void learning_lock::lock() noexcept { keep(enter_on(this_worker())); }

WEFT_SELDOM std::uintptr_t learning_lock::enter_as_revoked(std::uintptr_t me, std::uintptr_t flag) noexcept {
  // Carries the use before this one. relacy has the release sequences of C++11, where a relaxed store of the same thread
  // would carry it, too.
  inside_[flag].store(false, std::memory_order_release);  // -> owned (no model: as said above)
  return enter_as_any(me);
}

// Takes the shared flag. Then nobody is inside but an owner, whose ownership is revoked.
WEFT_SELDOM std::uintptr_t learning_lock::enter_as_any(std::uintptr_t me) noexcept {
  static_assert(alignof(worker) > low_bits && owners <= low_bits);
  const bool was_taken = inside_[shared].exchange(true, std::memory_order_acquire);  // <- lent
  if (was_taken) wait_for_turn();

  const std::uintptr_t who = who_.load(std::memory_order_relaxed);  // written under the shared flag alone
  if (who == me) {
    in_a_row_ = in_a_row_ + 1;
    if (in_a_row_ < std::uint32_t{enough_} << 3 * made_ || made_ == owners || !light_fences_are_free()) return shared;
    transition_to_owned_by(me);
    return shared;
  }
  learn_back_off(was_taken);
  in_a_row_ = 1;
  transition_to_not_owned(me);
  if (const std::uintptr_t owner = who & low_bits; owner != 0) wait_for_revoked(owner - 1);
  return shared;
}

// With the shared flag. The worker `me` finds itself the owner when it takes the lock again.
inline void learning_lock::transition_to_owned_by(std::uintptr_t me) noexcept {
  made_ = static_cast<std::uint8_t>(made_ + 1);
  who_.store(me | made_, std::memory_order_relaxed);  // for this worker, which needs no edge to itself
}

// With the shared flag. Revokes the ownership, if there is one. `me` has taken the lock last.
inline void learning_lock::transition_to_not_owned(std::uintptr_t me) noexcept {
  who_.store(me, std::memory_order_relaxed);  // ordered before the look at the owner's flag by heavy_fence()
}

// Waits until the owner that had this flag is not inside.
inline void learning_lock::wait_for_revoked(std::uintptr_t flag) noexcept {
  heavy_fence();
  spin_wait wait;
  while (inside_[flag].load(std::memory_order_acquire)) wait.once();  // <- owned
}

// The holder may have lost its processor, so a thread backs off a few times only.
WEFT_SELDOM void learning_lock::wait_for_turn() noexcept {
  spin_wait wait;
  unsigned times = 0;
  do {
    do {
      const unsigned back_off = back_off_.load(std::memory_order_relaxed);  // as declared
      if (back_off != 0 && times != 4)
        ++times, spin_wait::back_off(128u << back_off);
      else
        wait.once();
    } while (inside_[shared].load(std::memory_order_relaxed));  // the exchange takes the edge
  } while (inside_[shared].exchange(true, std::memory_order_acquire));  // <- lent
}

// With the lock, by a worker that takes it after another one.
inline void learning_lock::learn_back_off(bool was_taken) noexcept {
  const std::uint8_t back_off = back_off_.load(std::memory_order_relaxed);  // as declared
  if (!was_taken && back_off != 0)
    back_off_.store(static_cast<std::uint8_t>(back_off - 1), std::memory_order_relaxed);  // as declared
  else if (was_taken && in_a_row_ < long_turn && back_off != longest_back_off)
    back_off_.store(static_cast<std::uint8_t>(back_off + 1), std::memory_order_relaxed);  // as declared
}

}  // namespace weft::detail

#include <weft/detail/sync/learning_lock.hpp>

#include "base/spin.hpp"
#include "sync/lock_here.hpp"

namespace weft::detail {

void learning_lock::lock() noexcept { keep(enter_on(this_worker())); }

WEFT_SELDOM std::uintptr_t learning_lock::enter_as_dismissed(std::uintptr_t me, std::uintptr_t flag) noexcept {
  // Carries its use before. relacy has the release sequences of C++11, where a relaxed store of the same thread would, too.
  inside_[flag].store(false, std::memory_order_release);  // -> owned (no model: as said above)
  return enter_as_any(me);
}

WEFT_SELDOM std::uintptr_t learning_lock::enter_as_any(std::uintptr_t me) noexcept {
  static_assert(alignof(worker) > low_bits && regulars <= low_bits);
  const bool was_taken = inside_[common].exchange(true, std::memory_order_acquire);  // <- lent
  if (was_taken) wait_for_turn();

  const std::uintptr_t who = who_.load(std::memory_order_relaxed);  // only who has taken it writes it
  if (who == me) {
    in_a_row_ = in_a_row_ + 1;
    if (in_a_row_ < std::uint32_t{enough_} << 3 * made_ || made_ == regulars || !light_fences_are_free()) return common;
    made_ = static_cast<std::uint8_t>(made_ + 1);
    who_.store(me | made_, std::memory_order_relaxed);  // for itself, the next time
    return common;
  }
  learn_from_turn(was_taken);
  in_a_row_ = 1;
  who_.store(me, std::memory_order_relaxed);  // the fence, or nobody's concern
  const std::uintptr_t regular = who & low_bits;
  if (regular == 0) return common;
  heavy_fence();
  spin_wait wait;
  while (inside_[regular - 1].load(std::memory_order_acquire)) wait.once();  // <- owned
  return common;
}

// Who has the lock may have lost its processor, so one keeps away a few times only.
WEFT_SELDOM void learning_lock::wait_for_turn() noexcept {
  spin_wait wait;
  unsigned away = 0;
  do {
    do {
      const unsigned patience = patience_.load(std::memory_order_relaxed);  // as declared
      if (patience != 0 && away != 4)
        ++away, spin_wait::keep_away(128u << patience);
      else
        wait.once();
    } while (inside_[common].load(std::memory_order_relaxed));  // the exchange takes the edge
  } while (inside_[common].exchange(true, std::memory_order_acquire));  // <- lent
}

// By who takes it after another, with the lock.
inline void learning_lock::learn_from_turn(bool was_taken) noexcept {
  const std::uint8_t patience = patience_.load(std::memory_order_relaxed);  // as declared
  if (!was_taken && patience != 0)
    patience_.store(static_cast<std::uint8_t>(patience - 1), std::memory_order_relaxed);  // as declared
  else if (was_taken && in_a_row_ < long_turn && patience != most_patience)
    patience_.store(static_cast<std::uint8_t>(patience + 1), std::memory_order_relaxed);  // as declared
}

}  // namespace weft::detail

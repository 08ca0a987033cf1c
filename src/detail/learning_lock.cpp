#include <weft/detail/learning_lock.hpp>

#include "detail/lock_here.hpp"
#include "detail/spin.hpp"

namespace weft::detail {

void learning_lock::lock() noexcept { keep(enter_on(this_worker())); }

WEFT_SELDOM std::uintptr_t learning_lock::enter_as_dismissed(std::uintptr_t me, std::uintptr_t flag) noexcept {
  // Carries its use before. relacy has the release sequences of C++11, where a relaxed store of the same thread would, too.
  inside_[flag].store(false, std::memory_order_release);  // -> owned (no model)
  return enter_as_any(me);
}

WEFT_SELDOM std::uintptr_t learning_lock::enter_as_any(std::uintptr_t me) noexcept {
  static_assert(alignof(worker) > low_bits && regulars <= low_bits);
  spin_wait wait;
  while (inside_[common].exchange(true, std::memory_order_acquire))       // <- lent
    while (inside_[common].load(std::memory_order_relaxed)) wait.once();  // the exchange takes the edge

  const std::uintptr_t who = who_.load(std::memory_order_relaxed);  // only who has taken it writes it
  if (who == me) {
    in_a_row_ = in_a_row_ + 1;
    if (in_a_row_ < std::uint32_t{enough_} << 3 * made_ || made_ == regulars || !light_fences_are_free()) return common;
    made_ = static_cast<std::uint8_t>(made_ + 1);
    who_.store(me | made_, std::memory_order_relaxed);  // for itself, the next time
    return common;
  }
  in_a_row_ = 1;
  who_.store(me, std::memory_order_relaxed);  // the fence, or nobody's concern
  const std::uintptr_t regular = who & low_bits;
  if (regular == 0) return common;
  heavy_fence();
  while (inside_[regular - 1].load(std::memory_order_acquire)) wait.once();  // <- owned
  return common;
}

}  // namespace weft::detail

#include <weft/detail/learning_lock.hpp>

#include "detail/fence.hpp"
#include "detail/spin.hpp"
#include "detail/worker.hpp"

namespace weft::detail {

// By a worker, not a thread: a thread that takes over the worker of one that ended goes on as its regular.
void learning_lock::lock() noexcept {
  static_assert(alignof(worker) > low_bits && regulars <= low_bits);
  const auto me = reinterpret_cast<std::uintptr_t>(&this_worker());
  const std::uintptr_t who = who_.load(std::memory_order_relaxed);  // a guess: it is looked at again below
  const std::uintptr_t flag = (who ^ me) - 1;
  if (flag >= regulars) return lock_as_any(me);
  inside_[flag].store(true, std::memory_order_relaxed);  // the fence has the order
  free_fence();
  if (who_.load(std::memory_order_relaxed) == who) [[likely]] {  // as it made itself; nobody else was in since then
    entrance_ = static_cast<std::uint8_t>(flag);
    return;
  }
  // Carries its use before. relacy has the release sequences of C++11, where a relaxed store of the same thread would, too.
  inside_[flag].store(false, std::memory_order_release);  // -> owned (no model)
  lock_as_any(me);
}

void learning_lock::lock_as_any(std::uintptr_t me) noexcept {
  spin_wait wait;
  while (taken_.exchange(true, std::memory_order_acquire))       // <- lent
    while (taken_.load(std::memory_order_relaxed)) wait.once();  // the exchange takes the edge

  const std::uintptr_t who = who_.load(std::memory_order_relaxed);  // only who has taken it writes it
  if (who == me) {
    in_a_row_ = in_a_row_ + 1;
    if (in_a_row_ < std::uint32_t{enough_} << 3 * made_ || made_ == regulars || !light_fences_are_free()) return;
    made_ = static_cast<std::uint8_t>(made_ + 1);
    return who_.store(me | made_, std::memory_order_relaxed);  // for itself, the next time
  }
  in_a_row_ = 1;
  who_.store(me, std::memory_order_relaxed);  // the fence, or nobody's concern
  const std::uintptr_t regular = who & low_bits;
  if (regular == 0) return;
  heavy_fence();
  while (inside_[regular - 1].load(std::memory_order_acquire)) wait.once();  // <- owned
}

}  // namespace weft::detail

// The owner's way into a learning_lock, inline, for sources that have their worker at hand. How the lock works:
// weft/detail/sync/learning_lock.hpp.
#pragma once

#include <weft/detail/sync/learning_lock.hpp>

#include "base/fence.hpp"
#include "core/worker.hpp"

namespace weft::detail {

// The owner is a worker, not a thread: a thread that takes over the worker of one that ended owns what that one owned.
inline std::uintptr_t learning_lock::enter_on(const worker& here) noexcept {
  const auto me = reinterpret_cast<std::uintptr_t>(&here);
  const std::uintptr_t who = who_.load(std::memory_order_relaxed);  // a guess: it is looked at again below
  const std::uintptr_t flag = (who ^ me) - 1;
  if (flag >= owners) [[unlikely]]
    return enter_as_any(me);
  inside_[flag].store(true, std::memory_order_relaxed);  // the fence has the order
  free_fence();
  if (who_.load(std::memory_order_relaxed) == who)
      [[likely]]  // as it was written by this worker itself: nobody else has been inside since
    return flag;
  return enter_as_revoked(me, flag);
}

}  // namespace weft::detail

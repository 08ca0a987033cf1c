#include <weft/detail/base/lock.hpp>

#include "base/spin.hpp"

namespace weft::detail {

void tiny_lock::lock_contended() noexcept {
  spin_wait wait;
  do {
    while (taken_.load(std::memory_order_relaxed)) wait.once();  // the exchange takes the edge
  } while (taken_.exchange(true, std::memory_order_acquire));  // <- list
}

}  // namespace weft::detail

#include "io/io_guard.hpp"

#include "pool/pool_core.hpp"

namespace weft::detail {

bool io_guard::is_alone(const pool_core& workers) noexcept { return workers.size() == 1; }

void io_guard::end() noexcept { real_clock().cancel(*this); }

void io_guard::arm() noexcept { real_clock().arm(*this, std::chrono::steady_clock::now() + every); }

void io_guard::look(timer& self) noexcept {
  auto& mine = static_cast<io_guard&>(self);
  pool_core& pool = *mine.workers();
  const state before = mine.state_.exchange(armed, std::memory_order_acq_rel);  // <-, -> left (no model: see `state_`)
  if (pool.is_asleep()) {
    // A worker that has left since the exchange is seen here, and the timer is armed again. One that leaves from here on arms it.
    state was = armed;
    if (mine.state_.compare_exchange_strong(was, off,
                                            std::memory_order_acq_rel,   // <-, -> left (no model: see `state_`)
                                            std::memory_order_relaxed))  // it looks again next time
      return;  // the guard and the pool may be gone before this line
  } else if (mine.needs_one(before == armed_since_left)) {
    pool.call_one();
  }
  mine.arm();
}

}  // namespace weft::detail

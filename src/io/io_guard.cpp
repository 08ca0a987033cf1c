#include "io/io_guard.hpp"

#include "pool/pool_core.hpp"

namespace weft::detail {

bool io_guard::is_alone(const pool_core& workers) noexcept { return workers.size() == 1; }

void io_guard::end() noexcept { real_clock().cancel(*this); }

void io_guard::arm() noexcept { real_clock().arm(*this, std::chrono::steady_clock::now() + every); }

void io_guard::look(timer& self) noexcept {
  auto& mine = static_cast<io_guard&>(self);
  pool_core& pool = *mine.workers();
  if (pool.is_asleep()) {
    // A worker that leaves the set of idle workers from here on arms the timer, or is seen by is_asleep() below.
    mine.is_armed_.exchange(false, std::memory_order_acq_rel);  // <-, -> left (no model: see `is_armed_`)
    if (pool.is_asleep()) return;
    if (mine.is_armed_.exchange(true, std::memory_order_acq_rel)) return;  // <-, -> left (no model: see `is_armed_`)
  } else if (mine.needs_one()) {
    pool.call_one();
  }
  mine.arm();
}

}  // namespace weft::detail

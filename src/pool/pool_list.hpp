// All pools of the process, for whoever looks at them from outside. A pool enters it when its threads have started,
// and leaves it before its core is deleted.
#pragma once

#include <cstdint>

namespace weft::detail {

class pool_core;  // NOLINT(cppcoreguidelines-virtual-class-destructor): it is final

/// A pool's place in the list, in its core.
struct pool_place {
  pool_core* of = nullptr;  // null: it is not in the list
  std::uint32_t forks_before = 0;
  pool_place* next = nullptr;
  pool_place* before = nullptr;
};

/// Enters a pool, the newest first. Any thread.
void enter_pool(pool_place& place, pool_core& one) noexcept;
/// Takes it out, if it is there. No visit sees it after this.
void leave_pool(pool_place& place) noexcept;

/// Calls `visit(one, with)` for each pool of this process, whose core stays while it is visited. No visit may make a pool, or end
/// one. Those of the process that this one was forked from are left out.
void visit_pools(void (*visit)(pool_core& one, void* with), void* with);

}  // namespace weft::detail

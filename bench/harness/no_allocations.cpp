// What programs link that don't count allocations.
#include "allocations.hpp"

namespace bench {
allocation_totals allocation_count() noexcept { return {}; }
bool counts_allocations() noexcept { return false; }
}  // namespace bench

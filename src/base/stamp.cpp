#include "base/stamp.hpp"

#if defined(__x86_64__)
#include <cpuid.h>

namespace weft::detail {

constinit bool stamps_are_ticks = false;

std::uint64_t stamp_without_ticks() noexcept { return steady_nanoseconds(); }

// Before all constructors of the program's own, so that no stamp is taken in one way and compared with one of the other.
[[gnu::constructor(101)]] static void look_at_counter() noexcept {
  unsigned a = 0, b = 0, c = 0, d = 0;
  stamps_are_ticks = __get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && (d & (1u << 8)) != 0;
}

}  // namespace weft::detail
#endif

// mutex_held: --size take one mutex in turns on one thread, and each yields once while it has it, so that all others get
// in line; under it each adds one to a number, ten thousand times in all. One item is a lock that was waited for, a yield
// and an unlock. Where the holder does not wait, as in `mutex`, nobody on its thread ever finds it taken.
#pragma once

#include "../harness/harness.hpp"

#include <cstddef>

namespace bench { inline constexpr std::size_t held_locks = 10'240; }  // namespace bench

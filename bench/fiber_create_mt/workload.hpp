// fiber_create_mt: LioNet's. 3000 fibers are made, yield once, and end, on a pool of --size threads; one of them
// makes all. One item is a fiber; the call begins with the first and ends when all have ended.
#pragma once

#include <cstddef>

namespace bench { inline constexpr std::size_t created_fibers = 3000; }  // namespace bench

// fiber_create_mt: LioNet's. Fibers are made, yield once, and end, on a pool; one of them makes all. One item is a fiber; the
// call begins with the first and ends when all have ended. --size is the number of threads, and 1000 more where there are
// 1000 fibers instead of 3000.
#pragma once

#include <cstddef>

namespace bench {

constexpr std::size_t threads_of(std::size_t size) { return size % 1000; }
constexpr std::size_t fibers_of(std::size_t size) { return size < 1000 ? 3000 : 1000; }

}  // namespace bench

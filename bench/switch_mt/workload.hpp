// switch_mt: LioNet's. Coroutines yield 1000 times each, on a pool. One item is a switch. --size is the number of threads,
// and 3000 more where there are 3000 coroutines instead of 1000.
#pragma once

#include <cstddef>

namespace bench {

inline constexpr std::size_t switch_rounds = 1000;

constexpr std::size_t threads_of(std::size_t size) { return size % 1000; }
constexpr std::size_t coroutines_of(std::size_t size) { return size < 3000 ? 1000 : 3000; }

}  // namespace bench

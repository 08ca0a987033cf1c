// switch_mt: 1000 coroutines yield 1000 times each, on a pool of --size threads. One item is a switch.
#pragma once

#include <cstddef>

namespace bench {

inline constexpr std::size_t switch_coroutines = 1000;
inline constexpr std::size_t switch_rounds = 1000;

}  // namespace bench

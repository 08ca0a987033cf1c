// fib: the recursion that does nothing but fork two and join them, on a pool of --size threads. One item is a call.
#pragma once

#include <cstddef>

namespace bench {

inline constexpr int fib_of = 30;
inline constexpr long fib_result = 832'040;
inline constexpr std::size_t fib_calls = 2'692'537;

}  // namespace bench

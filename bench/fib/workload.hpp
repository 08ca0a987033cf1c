// fib: the recursion that does nothing but fork two and join them, on a pool of --size threads. One item is a call.
//
// fib(30), and not fib(35), which is eleven times as many calls: one thread has no more than a path of the tree alive, so a
// call costs the same. Processor time of one, 30 and 35, medians of three runs: weft 9.4 and 8.9 ns, libfork 8.4 and 8.2,
// oneTBB 44.5 and 44.3.
#pragma once

#include <cstddef>

namespace bench {

inline constexpr int fib_of = 30;
inline constexpr long fib_result = 832'040;
inline constexpr std::size_t fib_calls = 2'692'537;

// fib(20), for libraries that take a microsecond a call and more, and have a large part of the tree alive at once.
inline constexpr int short_fib_of = 20;
inline constexpr long short_fib_result = 6'765;
inline constexpr std::size_t short_fib_calls = 21'891;

}  // namespace bench

// adaptive: three kinds of work on a pool of a few threads, and on one of 16 that sees for itself how many of them are to
// be awake, as each pool with more threads than processors does. --size is the kind times 100 and the threads, 0 for those
// 16.
//
//   fib       fork two and join them; no more threads than processors are of use
//   yields    switch_mt's: 1000 coroutines that yield 1000 times each; the same
//   blocks    tasks that compute for 50 us and then block their thread for 300 us; many threads are
#pragma once

#include <cstddef>

namespace bench {

inline constexpr unsigned most_threads = 16;

enum class kind : std::size_t { fib = 1, yields = 2, blocks = 3 };

inline constexpr int adaptive_fib_of = 25;
inline constexpr long adaptive_fib_result = 75'025;
inline constexpr std::size_t adaptive_fib_calls = 242'785;

inline constexpr std::size_t yielding = 1000, yields_each = 1000;

inline constexpr std::size_t blocking_tasks = 200;

}  // namespace bench

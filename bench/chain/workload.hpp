// chain: 1000 nested awaits, each of a function of its own, with every callee visible to the compiler.
//
// The program of async_simple's performance report (docs/docs.en/Performance.md there): distinct functions, so that
// neither a loop nor recursion hides what a call costs, and a result that only all of them together give.
#pragma once

namespace bench {

#ifdef BENCH_CHAIN_LEVELS  // fewer, which compile faster, where nobody looks at the figures
inline constexpr int chain_levels = BENCH_CHAIN_LEVELS;
#else
inline constexpr int chain_levels = 1000;
#endif
inline constexpr int chain_result = 1 + chain_levels * (chain_levels + 1) / 2;
static_assert(chain_levels != 1000 || chain_result == 500501);

template <template <class> class Task, int N>
Task<int> lazy_fn() {
  if constexpr (N == 0) {
    co_return 1;
  } else {
    co_return N + co_await lazy_fn<Task, N - 1>();
  }
}

}  // namespace bench

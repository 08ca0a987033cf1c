// chain_opaque: the chain again, but each callee stands in another translation unit, so that no frame can be elided
// and no call inlined. This is what awaiting across files and libraries costs.
//
// bench/chain_opaque/<library>.cpp is compiled three times. With BENCH_HALF=0 it holds the levels of even number, with
// BENCH_HALF=1 the odd ones, and without it the measuring part:
//
//     #ifdef BENCH_HALF
//     template struct bench::chain_half<cppcoro::task, BENCH_HALF>;
//     #else
//     void bench::run(bench::state& state) { … bench::level<cppcoro::task, bench::chain_levels>::call() … }
//     #endif
//
// Rejected: `extern template`, which still lets a compiler inline; a volatile function pointer a level, which measures
// indirect calls. libfork is left out: its async functions are generic lambdas, of which each caller makes its own, so a
// callee in another translation unit can't be spelled.
#pragma once

#include <array>
#include <cstddef>
#include <utility>

namespace bench {

#ifdef BENCH_CHAIN_LEVELS  // fewer, which compile faster, where instructions are counted or nobody looks
inline constexpr int chain_levels = BENCH_CHAIN_LEVELS;
#else
inline constexpr int chain_levels = 1000;
#endif
inline constexpr int chain_result = 1 + chain_levels * (chain_levels + 1) / 2;
static_assert(chain_levels != 1000 || chain_result == 500501);

template <template <class> class Task, int N, int Half = N % 2>
struct level;

template <template <class> class Task, int N>
struct level<Task, N, 0> {
  static Task<int> call();
};

template <template <class> class Task, int N>
struct level<Task, N, 1> {
  static Task<int> call();
};

#ifdef BENCH_HALF
template <template <class> class Task, int N>
Task<int> level<Task, N, BENCH_HALF>::call() {
  if constexpr (N == 0) {
    co_return 1;
  } else {
    co_return N + co_await level<Task, N - 1>::call();
  }
}

/// Naming every level of one half makes the compiler emit it.
template <template <class> class Task, int Half>
struct chain_half {
  using function = Task<int> (*)();
  static const std::array<function, chain_levels / 2 + 1> levels;
};

template <template <class> class Task, int Half>
const std::array<Task<int> (*)(), chain_levels / 2 + 1> chain_half<Task, Half>::levels =
    []<std::size_t... I>(std::index_sequence<I...>) {
      return std::array<function, sizeof...(I)>{&level<Task, static_cast<int>(2 * I) + Half>::call...};
    }(std::make_index_sequence<chain_levels / 2 + 1>{});
#endif

}  // namespace bench

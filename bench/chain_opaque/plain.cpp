// The limit: a thousand calls, each into the other translation unit. Compiled three times, see workload.hpp.
#include "workload.hpp"

#include "../harness/harness.hpp"

template <class T>
using plain = T;

// The levels of the workload, with a function where they have a coroutine.
template <int N>
struct bench::level<plain, N, 0> {
  static int call();
};

template <int N>
struct bench::level<plain, N, 1> {
  static int call();
};

#ifdef BENCH_HALF
template <int N>
int bench::level<plain, N, BENCH_HALF>::call() {
  if constexpr (N == 0) {
    return 1;
  } else {
    return N + bench::level<plain, N - 1>::call();
  }
}

template struct bench::chain_half<plain, BENCH_HALF>;
#else
void bench::run(bench::state& state) {
  state.measure(chain_levels, chain_result, [] { return level<plain, chain_levels>::call(); });
}
#endif

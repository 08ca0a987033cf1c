// The limit: a thousand calls. The barrier keeps each of them; without it the compiler works out the sum.
#include "workload.hpp"

#include "../harness/harness.hpp"

namespace {

template <int N>
[[gnu::noinline]] int plain_fn() {
  int addend = N;
  asm volatile("" : "+r"(addend));
  if constexpr (N == 0) {
    return addend + 1;
  } else {
    return addend + plain_fn<N - 1>();
  }
}

}  // namespace

void bench::run(bench::state& state) {
  state.measure(chain_levels, chain_result, [] { return plain_fn<chain_levels>(); });
}

// The limit: 5000 chains of calls. See chain/plain.cpp for the barrier.
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <numeric>

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
  state.measure(1, collect_all_result, [] {
    std::vector<int> results;
    for (std::size_t i = 0; i != collect_all_tasks; ++i) results.push_back(plain_fn<collect_all_levels>());
    return std::accumulate(results.begin(), results.end(), 0L);
  });
}

#include "workload.hpp"

#include "../harness/harness.hpp"

#include <concurrencpp/concurrencpp.h>

using concurrencpp::lazy_result;

#ifdef BENCH_HALF
template struct bench::chain_half<lazy_result, BENCH_HALF>;
#else
void bench::run(bench::state& state) {
  state.measure(chain_levels, chain_result, [] { return level<lazy_result, chain_levels>::call().run().get(); });
}
#endif

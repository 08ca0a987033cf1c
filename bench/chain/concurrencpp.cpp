// lazy_result, run on the calling thread: no executor is involved.
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <concurrencpp/concurrencpp.h>

void bench::run(bench::state& state) {
  using concurrencpp::lazy_result;
  state.measure(chain_levels, chain_result, [] { return lazy_fn<lazy_result, chain_levels>().run().get(); });
}

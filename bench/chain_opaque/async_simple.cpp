#include "workload.hpp"

#include "../harness/harness.hpp"

#include <async_simple/coro/Lazy.h>
#include <async_simple/coro/SyncAwait.h>

using async_simple::coro::Lazy;

#ifdef BENCH_HALF
template struct bench::chain_half<Lazy, BENCH_HALF>;
#else
void bench::run(bench::state& state) {
  state.measure(chain_levels, chain_result,
                [] { return async_simple::coro::syncAwait(level<Lazy, chain_levels>::call()); });
}
#endif

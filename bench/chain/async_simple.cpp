// Lazy without an executor, as in the report that this program comes from.
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <async_simple/coro/Lazy.h>
#include <async_simple/coro/SyncAwait.h>

void bench::run(bench::state& state) {
  using async_simple::coro::Lazy;
  using async_simple::coro::syncAwait;
  state.measure(chain_levels, chain_result, [] { return syncAwait(lazy_fn<Lazy, chain_levels>()); });
}

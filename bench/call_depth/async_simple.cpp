#include "workload.hpp"

#include "../harness/harness.hpp"

#include <async_simple/coro/Lazy.h>
#include <async_simple/coro/SyncAwait.h>

void bench::run(bench::state& state) {
  using async_simple::coro::Lazy;
  using async_simple::coro::syncAwait;
  const std::uint64_t depth = state.size();
  state.measure(depth, sum_result(depth), [&] { return syncAwait(sum_to<Lazy>(depth)); });
}

// collectAllPara, as in the report that this program comes from.
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <async_simple/coro/Collect.h>
#include <async_simple/coro/Lazy.h>
#include <async_simple/coro/SyncAwait.h>

using async_simple::coro::Lazy;

static Lazy<long> collect_all() {
  long sum = 0;
  for (auto& result : co_await async_simple::coro::collectAllPara(bench::make_chains<Lazy>())) sum += result.value();
  co_return sum;
}

void bench::run(bench::state& state) {
  state.measure(1, collect_all_result, [] { return async_simple::coro::syncAwait(collect_all()); });
}

// collectAllPara: both children are posted.
#include "workload.hpp"

#include "../harness/async_simple_executor.hpp"
#include "../harness/harness.hpp"

#include <async_simple/coro/Collect.h>
#include <async_simple/coro/Lazy.h>
#include <async_simple/coro/SyncAwait.h>

using async_simple::coro::Lazy;

static Lazy<long> fib(int n) {
  if (n < 2) co_return n;
  auto [a, b] = co_await async_simple::coro::collectAllPara(fib(n - 1), fib(n - 2));
  co_return a.value() + b.value();
}

void bench::run(bench::state& state) {
  async_simple_executor pool{state.size()};
  state.measure(fib_calls, fib_result, [&] { return async_simple::coro::syncAwait(fib(fib_of).via(&pool)); });
}

// when_all; the second child goes on where its parent is.
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <coro/sync_wait.hpp>
#include <coro/task.hpp>
#include <coro/thread_pool.hpp>
#include <coro/when_all.hpp>

static coro::task<long> fib(coro::thread_pool& pool, int n) {
  if (n < 2) co_return n;
  auto [a, b] = co_await coro::when_all(pool.schedule(fib(pool, n - 1)), fib(pool, n - 2));
  co_return a.return_value() + b.return_value();
}

void bench::run(bench::state& state) {
  const auto pool = coro::thread_pool::make_unique({.thread_count = static_cast<std::uint32_t>(state.size())});
  state.measure(fib_calls, fib_result, [&] { return coro::sync_wait(pool->schedule(fib(*pool, fib_of))); });
}

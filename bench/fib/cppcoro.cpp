// when_all; the second child goes on where its parent is.
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <cppcoro/schedule_on.hpp>
#include <cppcoro/static_thread_pool.hpp>
#include <cppcoro/sync_wait.hpp>
#include <cppcoro/task.hpp>
#include <cppcoro/when_all.hpp>

static cppcoro::task<long> fib(cppcoro::static_thread_pool& pool, int n) {
  if (n < 2) co_return n;
  auto [a, b] = co_await cppcoro::when_all(cppcoro::schedule_on(pool, fib(pool, n - 1)), fib(pool, n - 2));
  co_return a + b;
}

void bench::run(bench::state& state) {
  cppcoro::static_thread_pool pool{static_cast<std::uint32_t>(state.size())};
  state.measure(fib_calls, fib_result,
                [&] { return cppcoro::sync_wait(cppcoro::schedule_on(pool, fib(pool, fib_of))); });
}

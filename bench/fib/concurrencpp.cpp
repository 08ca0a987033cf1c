// One child is started on the pool, the other goes on where its parent is.
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <concurrencpp/concurrencpp.h>
#include <memory>

using pool = std::shared_ptr<concurrencpp::thread_pool_executor>;

static concurrencpp::result<long> fork_fib(concurrencpp::executor_tag, pool on, int n);

static concurrencpp::lazy_result<long> fib(pool on, int n) {
  if (n < 2) co_return n;
  auto forked = fork_fib({}, on, n - 1);
  const long b = co_await fib(on, n - 2);
  co_return co_await forked + b;
}

static concurrencpp::result<long> fork_fib(concurrencpp::executor_tag, pool on, int n) {
  co_return co_await fib(on, n);
}

void bench::run(bench::state& state) {
  concurrencpp::runtime runtime;
  const auto on = std::make_shared<concurrencpp::thread_pool_executor>("fib", state.size(), std::chrono::seconds{60});
  state.measure(fib_calls, fib_result, [&] { return fork_fib({}, on, fib_of).get(); });
  on->shutdown();
}

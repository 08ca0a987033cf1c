#include "workload.hpp"

#include "../harness/harness.hpp"

#include <weft/combine.hpp>
#include <weft/pool.hpp>

namespace {

weft::task<long> fib(int n) {
  if (n < 2) co_return n;
  auto [a, b] = co_await weft::when_all(fib(n - 1), fib(n - 2));
  co_return a + b;
}

}  // namespace

void bench::run(bench::state& state) {
  const weft::pool pool{{.threads = static_cast<unsigned>(state.size())}};
  state.measure(fib_calls, fib_result, [&] { return weft::sync_wait(weft::start_on(pool.executor(), fib(fib_of))); });
}

// By a fork in a scope, and a call: what a program pays that wants a scope's stop and failures around each pair.
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <weft/pool.hpp>
#include <weft/scope.hpp>

namespace {

weft::task<long> fib(int n);

weft::task<long> both(weft::scope& s, int n) {
  weft::fork<long> a = s.fork(fib(n - 1));
  const long b = co_await fib(n - 2);
  co_return co_await std::move(a) + b;
}

weft::task<long> fib(int n) {
  if (n < 2) co_return n;
  co_return co_await weft::with_scope(both, n);
}

}  // namespace

void bench::run(bench::state& state) {
  const weft::pool pool{{.threads = static_cast<unsigned>(state.size())}};
  state.measure(fib_calls, fib_result, [&] { return weft::sync_wait(weft::start_on(pool.executor(), fib(fib_of))); });
}

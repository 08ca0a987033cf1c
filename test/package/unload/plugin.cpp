// A plugin that computes on a pool of its own, with tasks and fibers. No thread of it is left when answer() returns.
#include <weft/combine.hpp>
#include <weft/fiber.hpp>
#include <weft/pool.hpp>
#include <weft/scope.hpp>

namespace {

namespace w = weft;

w::task<long> fib(int n) {
  if (n < 2) co_return n;
  auto [a, b] = co_await w::when_all(fib(n - 1), fib(n - 2));
  co_return a + b;
}

w::task<long> both() {
  long from_fiber = 0;
  const auto all = [&](w::scope& s) -> w::task<> {
    s.go([&] { from_fiber = w::await(fib(10)); });
    co_return;
  };
  co_await w::with_scope(all);
  co_return from_fiber + co_await fib(15);
}

}  // namespace

extern "C" long answer() {
  const w::pool workers{{.threads = 3}};
  return w::sync_wait(w::start_on(workers.executor(), both()));
}

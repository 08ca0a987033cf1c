// A plugin that computes on a pool of its own, with tasks and fibers. No thread of it is left when answer() returns. What it
// calls by `blocking` leaves threads that wait for more, and one that is still at a call: they end when it is unloaded.
#include <atomic>
#include <chrono>
#include <thread>
#include <weft/blocking.hpp>
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

w::task<> call_that_says(std::atomic<int>* at) {
  co_await w::blocking([at] {
    *at = 1;
    std::this_thread::sleep_for(std::chrono::milliseconds{300});
    *at = 2;
  });
  *at = 3;
}

}  // namespace

extern "C" long answer() {
  const w::pool workers{{.threads = 3}};
  return w::sync_wait(w::start_on(workers.executor(), both()));
}

extern "C" long answer_of_a_call() {
  return w::sync_wait(w::blocking([] { return 665L; }));
}

// Begins a call that goes on, and does not wait for it. It says when it has begun, and when it is over.
extern "C" void begin_a_call(std::atomic<int>* at) {
  static w::inline_executor here;
  w::start(here, call_that_says(at), [](const w::result<void>&) {});
  while (*at == 0) std::this_thread::yield();
}

#include "workload.hpp"

#include "../harness/harness.hpp"

#include <atomic>
#include <chrono>
#include <thread>
#include <weft/combine.hpp>
#include <weft/pool.hpp>
#include <weft/scope.hpp>

namespace {

weft::task<long> fib(int n) {
  if (n < 2) co_return n;
  auto [a, b] = co_await weft::when_all(fib(n - 1), fib(n - 2));
  co_return a + b;
}

weft::task<> yields(std::atomic<std::size_t>& done) {
  for (std::size_t i = 0; i != bench::yields_each; ++i) co_await weft::yield();
  done.fetch_add(bench::yields_each, std::memory_order_relaxed);
}

weft::task<> blocks(std::atomic<std::size_t>& done) {
  using namespace std::chrono;
  for (const auto end = steady_clock::now() + microseconds{50}; steady_clock::now() < end;) {
  }
  std::this_thread::sleep_for(microseconds{300});
  done.fetch_add(1, std::memory_order_relaxed);
  co_return;
}

// `fork(scope, done)` begins one.
weft::task<std::size_t> many(weft::executor& where, std::size_t count, auto fork) {
  std::atomic<std::size_t> done{0};
  auto fork_all = [&](weft::scope& s) -> weft::task<> {
    for (std::size_t i = 0; i != count; ++i) fork(s, done);
    co_return;
  };
  co_await weft::with_scope({.executor = &where}, fork_all);
  co_return done.load();
}

}  // namespace

void bench::run(bench::state& state) {
  const auto threads = static_cast<unsigned>(state.size() % 100);
  const weft::pool pool{{.threads = threads == 0 ? most_threads : threads}};
  weft::executor& there = pool.executor();
  switch (static_cast<kind>(state.size() / 100)) {
    case kind::fib:
      return state.measure(adaptive_fib_calls, adaptive_fib_result,
                           [&] { return weft::sync_wait(weft::start_on(there, fib(adaptive_fib_of))); });
    case kind::yields:
      return state.measure(yielding * yields_each, yielding * yields_each, [&] {
        return weft::sync_wait(many(there, yielding, [](weft::scope& s, auto& done) { s.fork(yields(done)); }));
      });
    case kind::blocks:
      return state.measure(blocking_tasks, blocking_tasks, [&] {
        return weft::sync_wait(
            many(there, blocking_tasks, [&](weft::scope& s, auto& done) { s.fork_on(there, blocks, std::ref(done)); }));
      });
  }
}

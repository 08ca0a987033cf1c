// spawn_tuple, on the library's own pool.
#include "workload.hpp"

#include "../harness/harness.hpp"

#define TMC_PRIORITY_COUNT 1
#define TMC_TRIVIAL_TASK
#define TMC_IMPL
#include <tmc/all_headers.hpp>

static tmc::task<long> fib(int n) {
  if (n < 2) co_return n;
  auto [a, b] = co_await tmc::spawn_tuple(fib(n - 1), fib(n - 2));
  co_return a + b;
}

void bench::run(bench::state& state) {
  tmc::cpu_executor().set_thread_count(state.size()).init();
  state.measure(fib_calls, fib_result, [&] { return tmc::post_waitable(tmc::cpu_executor(), fib(fib_of), 0).get(); });
  tmc::cpu_executor().teardown();
}

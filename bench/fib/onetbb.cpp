// A task group for each call: one child is spawned, the other is a call.
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <tbb/global_control.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

static long fib(int n) {
  if (n < 2) return n;
  long a;
  tbb::task_group both;
  both.run([&] { a = fib(n - 1); });
  const long b = fib(n - 2);
  both.wait();
  return a + b;
}

void bench::run(bench::state& state) {
  const tbb::global_control limit{tbb::global_control::max_allowed_parallelism, state.size()};
  tbb::task_arena arena{static_cast<int>(state.size())};
  state.measure(fib_calls, fib_result, [&] { return arena.execute([] { return fib(fib_of); }); });
}

// A task group for each call: one child is spawned, the other is a call.
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <taskflow/taskflow.hpp>

static long fib(tf::Executor& executor, int n) {
  if (n < 2) return n;
  long a;
  auto both = executor.task_group();
  both.silent_async([&] { a = fib(executor, n - 1); });
  const long b = fib(executor, n - 2);
  both.corun();
  return a + b;
}

void bench::run(bench::state& state) {
  tf::Executor executor{state.size()};
  state.measure(fib_calls, fib_result, [&] { return executor.async([&] { return fib(executor, fib_of); }).get(); });
}

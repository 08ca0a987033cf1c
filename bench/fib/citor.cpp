// forkJoin of the two, on plain functions.
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <citor/thread_pool.h>

static long fib(citor::ThreadPool& pool, int n) {
  if (n < 2) return n;
  long a, b;
  pool.forkJoin<citor::CcdLocalForkJoinHints>([&] { a = fib(pool, n - 1); }, [&] { b = fib(pool, n - 2); });
  return a + b;
}

void bench::run(bench::state& state) {
  citor::ThreadPool pool{state.size()};
  state.measure(fib_calls, fib_result, [&] { return fib(pool, fib_of); });
}

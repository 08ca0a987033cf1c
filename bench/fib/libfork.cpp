#include "workload.hpp"

#include "../harness/harness.hpp"

#include <libfork/core.hpp>
#include <libfork/schedule.hpp>

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // call(…) is the spelling that g++ 12 knows, too

namespace {

constexpr auto fib = [](auto fib, int n) -> lf::task<long> {
  if (n < 2) co_return n;
  long a, b;
  co_await lf::fork(&a, fib)(n - 1);
  co_await lf::call(&b, fib)(n - 2);
  co_await lf::join;
  co_return a + b;
};

}  // namespace

void bench::run(bench::state& state) {
  lf::lazy_pool pool{state.size()};
  state.measure(fib_calls, fib_result, [&] { return lf::sync_wait(pool, fib, fib_of); });
}

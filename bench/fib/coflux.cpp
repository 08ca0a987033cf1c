// Both children are forks on its pool; what they leave is given back before their parent ends. fib(20) only.
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <coflux/executor.hpp>
#include <coflux/scheduler.hpp>
#include <coflux/task.hpp>
#include <memory_resource>

namespace {

using pool = coflux::thread_pool_executor<>;
using scheduler = coflux::scheduler<pool>;

coflux::fork<long, pool> fib(auto&&, int n) {
  if (n < 2) co_return n;
  auto&& context = co_await coflux::context();
  auto a = fib(context, n - 1), b = fib(context, n - 2);
  const long sum = co_await a + co_await b;
  co_await coflux::this_fork::destroy_forks();
  co_return sum;
}

coflux::task<long, pool, scheduler> fib_task(auto, int n) { co_return co_await fib(co_await coflux::context(), n); }

}  // namespace

void bench::run(bench::state& state) {
  scheduler where{pool{state.size()}};
  std::pmr::synchronized_pool_resource memory;
  auto environment = coflux::make_environment(&memory, where);
  state.measure(short_fib_calls, short_fib_result, [&] { return fib_task(environment, short_fib_of).get_result(); });
}

// collectAllPara: both children are posted. Its SimpleExecutor needs libaio, so here is its thread pool alone.
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <async_simple/coro/Collect.h>
#include <async_simple/coro/Lazy.h>
#include <async_simple/coro/SyncAwait.h>
#include <async_simple/util/ThreadPool.h>

using async_simple::coro::Lazy;

namespace {

class pool final : public async_simple::Executor {
 public:
  explicit pool(std::size_t threads) : Executor{"pool"}, threads_{threads} {}
  bool schedule(Func work) override {
    return threads_.scheduleById(std::move(work)) == async_simple::util::ThreadPool::ERROR_NONE;
  }
  bool currentThreadInExecutor() const override { return threads_.getCurrentId() != -1; }

 private:
  async_simple::util::ThreadPool threads_;
};

}  // namespace

static Lazy<long> fib(int n) {
  if (n < 2) co_return n;
  auto [a, b] = co_await async_simple::coro::collectAllPara(fib(n - 1), fib(n - 2));
  co_return a.value() + b.value();
}

void bench::run(bench::state& state) {
  pool on{state.size()};
  state.measure(fib_calls, fib_result, [&] { return async_simple::coro::syncAwait(fib(fib_of).via(&on)); });
}

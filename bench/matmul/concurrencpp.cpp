// One half is started on the pool, the other goes on where its parent is.
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <concurrencpp/concurrencpp.h>
#include <memory>

using pool = std::shared_ptr<concurrencpp::thread_pool_executor>;

static concurrencpp::result<void> start(concurrencpp::executor_tag, pool, concurrencpp::lazy_result<void> lazy) {
  co_await lazy;
}

static concurrencpp::lazy_result<void> multiply(pool on, bench::product all) {
  if (all.is_small()) {
    all.add();
    co_return;
  }
  const auto half = all.halves();
  if (half.in_turn) {
    co_await multiply(on, half.first);
    co_await multiply(on, half.second);
  } else {
    auto forked = start({}, on, multiply(on, half.first));
    co_await multiply(on, half.second);
    co_await forked;
  }
}

void bench::run(bench::state& state) {
  const auto on =
      std::make_shared<concurrencpp::thread_pool_executor>("matmul", state.size(), std::chrono::seconds{60});
  matrices m;
  state.measure(
      1, true, [&] { return m.next(); },
      [&](const product& all) {
        start({}, on, multiply(on, all)).get();
        return m.is_right();
      });
  on->shutdown();
}

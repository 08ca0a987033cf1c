#include "workload.hpp"

#include <coro/coro.hpp>
#include <memory>

namespace {

coro::task<void> waits_for_a_connection(coro::net::tcp::server& at) { co_await at.accept(); }

coro::task<void> sets(std::atomic<bool>& flag) {
  flag.store(true, std::memory_order_release);
  co_return;
}

}  // namespace

void bench::run(bench::state& state) {
  auto on =
      coro::scheduler::make_unique({.execution_strategy = coro::scheduler::execution_strategy_t::process_tasks_inline});
  coro::net::tcp::server at{on, {"127.0.0.1", 0}};
  on->spawn_detached(waits_for_a_connection(at));
  wake_ups(state, [&](std::atomic<bool>& ran) { on->spawn_detached(sets(ran)); });
  at.shutdown();
  on->shutdown();
}

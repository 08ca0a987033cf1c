// Each stack is one that nothing ever ran on, or that has gone back to the system; guarded.
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <atomic>
#include <weft/fiber.hpp>
#include <weft/pool.hpp>
#include <weft/stack_pool.hpp>

namespace {

weft::task<std::size_t> all(weft::executor& where, weft::stack_pool& stacks, std::size_t fibers) {
  std::atomic<std::size_t> ended{0};
  auto make = [&](weft::scope& s) -> weft::task<> {
    for (std::size_t i = 0; i != fibers; ++i) {
      auto in_fiber = [&] {
        weft::this_fiber::yield();  // to the pool, where any thread may take it
        ended.fetch_add(1, std::memory_order_relaxed);
      };
      s.go({.pool = &stacks}, in_fiber);
    }
    co_return;
  };
  co_await weft::with_scope({.executor = &where}, make);
  co_return ended.load();
}

}  // namespace

void bench::run(bench::state& state) {
  weft::stack_pool stacks;
  const weft::pool pool{{.threads = static_cast<unsigned>(threads_of(state.size()))}};
  const std::size_t fibers = fibers_of(state.size());
  state.measure(
      fibers, fibers, [&] { return stacks.trim(); },
      [&](const auto&) { return weft::sync_wait(all(pool.executor(), stacks, fibers)); });
}

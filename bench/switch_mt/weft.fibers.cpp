#include "workload.hpp"

#include "../harness/harness.hpp"

#include <atomic>
#include <weft/fiber.hpp>
#include <weft/pool.hpp>

namespace {

weft::task<std::size_t> all(weft::executor& where, std::size_t coroutines) {
  std::atomic<std::size_t> switches{0};
  auto yields = [&] {
    for (std::size_t i = 0; i != bench::switch_rounds; ++i) weft::this_fiber::yield();
    switches.fetch_add(bench::switch_rounds, std::memory_order_relaxed);
  };
  auto go_all = [&](weft::scope& s) -> weft::task<> {
    for (std::size_t i = 0; i != coroutines; ++i) s.go(yields);
    co_return;
  };
  co_await weft::with_scope({.executor = &where}, go_all);
  co_return switches.load();
}

}  // namespace

void bench::run(bench::state& state) {
  const weft::pool pool{{.threads = static_cast<unsigned>(threads_of(state.size()))}};
  const std::size_t coroutines = coroutines_of(state.size()), switches = coroutines * switch_rounds;
  state.measure(switches, switches, [&] { return weft::sync_wait(all(pool.executor(), coroutines)); });
}

// Fibers that yield to each other, on a pool of one thread.
#include "workload.hpp"

#include <weft/fiber.hpp>
#include <weft/pool.hpp>

namespace {

weft::task<std::size_t> all(weft::executor& where, std::size_t count, std::size_t stack) {
  std::size_t switches = 0;  // one thread: no two at once
  auto yields = [&] {
    for (std::size_t left = bench::switches_of_each; left != 0; --left) weft::this_fiber::yield();
    switches += bench::switches_of_each;
  };
  auto go_all = [&](weft::scope& s) -> weft::task<> {
    for (std::size_t i = 0; i != count; ++i) s.go({.size = stack}, yields);
    co_return;
  };
  co_await weft::with_scope({.executor = &where}, go_all);
  co_return switches;
}

}  // namespace

void bench::run(bench::state& state) {
  choose_switches(state);
  const weft::pool pool{{.threads = 1}};
  const std::size_t count = state.size(), switches = count * switches_of_each;
  state.measure(switches, switches, [&] { return weft::sync_wait(all(pool.executor(), count, stack_bytes(state))); });
}

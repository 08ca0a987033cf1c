#include "workload.hpp"

#include <weft/fiber.hpp>
#include <weft/pool.hpp>

namespace {

// Fibers on a pool of one that yield to each other, as goroutines do. Their making is within the clock, as there.
weft::task<std::size_t> all(weft::executor& where, std::size_t count, std::size_t stack) {
  std::size_t switches = 0;  // one thread: no two at once
  auto yields = [&] {
    for (std::size_t left = bench::switches_of_each; left != 0; --left) {
      ++switches;
      weft::this_fiber::yield();
    }
  };
  auto go_all = [&](weft::scope& s) -> weft::task<> {
    for (std::size_t i = 0; i != count; ++i) s.go(weft::stack_options{.size = stack}, yields);
    co_return;
  };
  co_await weft::with_scope({.executor = &where}, go_all);
  co_return switches;
}

}  // namespace

void bench::run(bench::state& state) {
  const weft::pool pool{{.threads = 1}};
  const std::size_t switches = state.size() * switches_of_each;
  state.measure(switches, switches,
                [&] { return weft::sync_wait(all(pool.executor(), state.size(), stack_bytes(state))); });
}

// Scheduled: fibers on a pool of one thread. The one that measures is among them.
#include "workload.hpp"

#include <weft/fiber.hpp>
#include <weft/pool.hpp>

namespace {

weft::task<> all(weft::executor& where, bench::state& state) {
  std::size_t turns = 0, begun = 1;  // one thread: no two at once
  bool over = false;
  auto takes_turns = [&] {
    ++begun;
    while (!over) {
      ++turns;
      weft::this_fiber::yield();
    }
  };
  auto measures = [&] {
    struct ends {
      bool& over;
      ~ends() { over = true; }
    } const at_end{over};
    while (begun != state.size()) weft::this_fiber::yield();  // the last made may be the first to begin
    measure_scheduled(state, turns, [] { weft::this_fiber::yield(); });
  };
  auto go_all = [&](weft::scope& s) -> weft::task<> {
    for (std::size_t i = 1; i < state.size(); ++i) s.go({.size = bench::switch_stack}, takes_turns);
    s.go({.size = bench::switch_stack}, measures);
    co_return;
  };
  co_await weft::with_scope({.executor = &where}, go_all);
}

}  // namespace

void bench::run(bench::state& state) {
  const weft::pool pool{{.threads = 1}};
  weft::sync_wait(all(pool.executor(), state));
}

// Scheduled, without hooks: each coroutine yields to the next one of its processer. The one that measures is in that ring.
#include "workload.hpp"

#include "../harness/libgo.hpp"

void bench::run(bench::state& state) {
  std::size_t turns = 0;
  bool over = false;
  for (std::size_t i = 1; i < state.size(); ++i) go co_stack(switch_stack)[&] {
      while (!over) {
        ++turns;
        co_yield;
      }
    };
  in_libgo([&] {
    measure_scheduled(state, turns, [] { co_yield; });
    over = true;
  });
}

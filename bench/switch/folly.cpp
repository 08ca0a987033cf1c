// Scheduled: fibers of one FiberManager. One that yields runs again after all others; the one that measures is among them.
#include "workload.hpp"

#include "../harness/folly_fibers.hpp"

void bench::run(bench::state& state) {
  constexpr std::size_t kept = 1000;  // as its options have it
  folly_fibers fibers{switch_stack, kept};
  std::size_t turns = 0;
  bool over = false;
  for (std::size_t i = 1; i < state.size(); ++i)
    fibers.add([&] {
      while (!over) {
        ++turns;
        fibers.yield();
      }
    });
  fibers.run([&] {
    struct ends {
      bool& over;
      ~ends() { over = true; }
    } const at_end{over};
    measure_scheduled(state, turns, [&] { fibers.yield(); });
  });
}

// Fibers of one FiberManager, which keeps ended ones.
#include "workload.hpp"

#include "../harness/folly_fibers.hpp"

void bench::run(bench::state& state) {
  folly_fibers fibers{created_stack, state.size()};
  measure_creation(state, [&](std::size_t count) {
    std::size_t ended = 0;
    for (std::size_t i = 0; i != count; ++i) fibers.add([&] { ++ended; });
    fibers.run_until([&] { return ended == count; });
    return ended;
  });
}

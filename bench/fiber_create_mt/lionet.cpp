#include "workload.hpp"

#include "../harness/harness.hpp"
#include "../harness/lionet.hpp"

void bench::run(bench::state& state) {
  lionet_threads threads{state.size()};
  state.measure(created_fibers, created_fibers, [&] {
    std::atomic<std::size_t> ended{0};
    threads.run(created_fibers, [&] {
      LioNet::Fiber::YieldToReady();
      ended.fetch_add(1, std::memory_order_relaxed);
    });
    return ended.load();
  });
}

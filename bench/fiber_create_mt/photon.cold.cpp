// With guards, from the system and back to it.
#include "workload.hpp"

#include "../harness/harness.hpp"
#include "../harness/photon_threads.hpp"

void bench::run(bench::state& state) {
  const std::size_t fibers = fibers_of(state.size());
  photon_threads threads{threads_of(state.size()), 0};
  state.measure(fibers, fibers, [&] {
    std::atomic<std::size_t> ended{0};
    threads.run(fibers, [&] {
      photon::thread_yield();
      ended.fetch_add(1, std::memory_order_relaxed);
    });
    return ended.load();
  });
}

#include "workload.hpp"

#include "../harness/harness.hpp"
#include "../harness/photon_threads.hpp"

void bench::run(bench::state& state) {
  photon_threads threads{state.size(), created_fibers};
  state.measure(created_fibers, created_fibers, [&] {
    std::atomic<std::size_t> ended{0};
    threads.run(created_fibers, [&] {
      photon::thread_yield();
      ended.fetch_add(1, std::memory_order_relaxed);
    });
    return ended.load();
  });
}

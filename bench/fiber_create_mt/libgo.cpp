#include "workload.hpp"

#include "../harness/harness.hpp"
#include "../harness/libgo.hpp"

void bench::run(bench::state& state) {
  libgo_threads threads{threads_of(state.size())};
  const std::size_t fibers = fibers_of(state.size());
  state.measure(fibers, fibers, [&] {
    std::atomic<std::size_t> ended{0};
    threads.run(fibers, [&] {
      co_yield;
      ended.fetch_add(1, std::memory_order_relaxed);
    });
    return ended.load();
  });
}

// With guards, from the system and back to it.
#include "workload.hpp"

#include "../harness/boost_fiber_threads.hpp"
#include "../harness/harness.hpp"

void bench::run(bench::state& state) {
  boost_fiber_threads threads{threads_of(state.size())};
  const std::size_t fibers = fibers_of(state.size());
  state.measure(fibers, fibers, [&] {
    std::atomic<std::size_t> ended{0};
    threads.run(
        fibers,
        [&] {
          boost::this_fiber::yield();
          ended.fetch_add(1, std::memory_order_relaxed);
        },
        boost::fibers::protected_fixedsize_stack{});
    return ended.load();
  });
}

#include "workload.hpp"

#include "../harness/boost_fiber_threads.hpp"
#include "../harness/harness.hpp"

void bench::run(bench::state& state) {
  boost_fiber_threads threads{state.size()};
  state.measure(created_fibers, created_fibers, [&] {
    std::atomic<std::size_t> ended{0};
    threads.run(created_fibers, [&] {
      boost::this_fiber::yield();
      ended.fetch_add(1, std::memory_order_relaxed);
    });
    return ended.load();
  });
}

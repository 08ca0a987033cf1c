#include "workload.hpp"

#include "../harness/boost_fiber_threads.hpp"
#include "../harness/harness.hpp"

void bench::run(bench::state& state) {
  boost_fiber_threads threads{threads_of(state.size())};
  const std::size_t coroutines = coroutines_of(state.size()), switches = coroutines * switch_rounds;
  state.measure(switches, switches, [&] {
    std::atomic<std::size_t> switched{0};
    threads.run(coroutines, [&] {
      for (std::size_t i = 0; i != switch_rounds; ++i) boost::this_fiber::yield();
      switched.fetch_add(switch_rounds, std::memory_order_relaxed);
    });
    return switched.load();
  });
}

#include "workload.hpp"

#include "../harness/harness.hpp"
#include "../harness/sylar.hpp"

void bench::run(bench::state& state) {
  const std::size_t coroutines = coroutines_of(state.size()), switches = coroutines * switch_rounds;
  sylar_threads threads{threads_of(state.size())};
  state.measure(switches, switches, [&] {
    std::atomic<std::size_t> switched{0};
    threads.run(coroutines, [&] {
      for (std::size_t i = 0; i != switch_rounds; ++i) sylar::Fiber::YieldToReady();
      switched.fetch_add(switch_rounds, std::memory_order_relaxed);
    });
    return switched.load();
  });
}

#include "workload.hpp"

#include "../harness/harness.hpp"
#include "../harness/photon_threads.hpp"

void bench::run(bench::state& state) {
  const std::size_t coroutines = coroutines_of(state.size()), switches = coroutines * switch_rounds;
  photon_threads threads{threads_of(state.size()), coroutines};
  state.measure(switches, switches, [&] {
    std::atomic<std::size_t> switched{0};
    threads.run(coroutines, [&] {
      for (std::size_t i = 0; i != switch_rounds; ++i) photon::thread_yield();
      switched.fetch_add(switch_rounds, std::memory_order_relaxed);
    });
    return switched.load();
  });
}

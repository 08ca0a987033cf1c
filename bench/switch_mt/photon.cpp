#include "workload.hpp"

#include "../harness/harness.hpp"
#include "../harness/photon_threads.hpp"

void bench::run(bench::state& state) {
  photon_threads threads{state.size(), switch_coroutines};
  const std::size_t switches = switch_coroutines * switch_rounds;
  state.measure(switches, switches, [&] {
    std::atomic<std::size_t> switched{0};
    threads.run(switch_coroutines, [&] {
      for (std::size_t i = 0; i != switch_rounds; ++i) photon::thread_yield();
      switched.fetch_add(switch_rounds, std::memory_order_relaxed);
    });
    return switched.load();
  });
}

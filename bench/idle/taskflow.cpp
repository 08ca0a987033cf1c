#include "workload.hpp"

#include <taskflow/taskflow.hpp>

void bench::run(bench::state& state) {
  tf::Executor executor{threads_of(state.size())};
  wake_ups(state, [&](std::atomic<bool>& ran) {
    executor.silent_async([&ran] { ran.store(true, std::memory_order_release); });
  });
}

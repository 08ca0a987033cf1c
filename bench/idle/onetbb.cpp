// One slot of an arena is kept for the thread that made it, so there are as many threads besides.
#include "workload.hpp"

#include <tbb/global_control.h>
#include <tbb/task_arena.h>

void bench::run(bench::state& state) {
  const std::size_t slots = threads_of(state.size()) + 1;
  const tbb::global_control limit{tbb::global_control::max_allowed_parallelism, slots};
  tbb::task_arena arena{static_cast<int>(slots)};
  wake_ups(state,
           [&](std::atomic<bool>& ran) { arena.enqueue([&ran] { ran.store(true, std::memory_order_release); }); });
}

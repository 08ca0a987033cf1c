// A function that enqueues itself again, since oneTBB has no coroutines. One slot of an arena is kept for the thread that
// made it, so there are as many threads besides.
#include "workload.hpp"

#include <tbb/global_control.h>
#include <tbb/task_arena.h>
#include <thread>

namespace {

struct yielding {
  tbb::task_arena& arena;
  std::atomic<bool> over{false};
  std::atomic<std::size_t> alive{bench::yielding_tasks};

  void again() {
    if (!over.load(std::memory_order_relaxed))
      arena.enqueue([this] { again(); });
    else
      alive.fetch_sub(1, std::memory_order_release);
  }
};

}  // namespace

void bench::run(bench::state& state) {
  const std::size_t slots = state.size() + 1;
  const tbb::global_control limit{tbb::global_control::max_allowed_parallelism, slots};
  tbb::task_arena arena{static_cast<int>(slots)};
  yielding all{arena};
  for (std::size_t i = 0; i != yielding_tasks; ++i) arena.enqueue([&] { all.again(); });
  short_ones(state, all.over,
             [&](std::atomic<bool>& ran) { arena.enqueue([&ran] { ran.store(true, std::memory_order_release); }); });
  all.over = true;
  while (all.alive.load(std::memory_order_acquire) != 0) std::this_thread::yield();
}

// A function, since oneTBB has no coroutines. One slot of an arena is kept for the thread that made it, so there are as
// many threads besides.
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <tbb/global_control.h>
#include <tbb/task_arena.h>

void bench::run(bench::state& state) {
  const tbb::global_control limit{tbb::global_control::max_allowed_parallelism, state.size() + 1};
  tbb::task_arena arena{static_cast<int>(state.size() + 1)};
  state.measure(posts, posts, [&] {
    posted all;
    return all.by_producers([&](posted& of) { arena.enqueue([&of] { of.ran(); }); });
  });
}

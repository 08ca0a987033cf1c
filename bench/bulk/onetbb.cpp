// A task_group, whose tasks are functions; from outside they are enqueued and count, since who waits for a group works on it.
// One slot of an arena is kept for the thread that made it, so there are as many threads besides.
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <tbb/global_control.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

void bench::run(bench::state& state) {
  const std::size_t threads = threads_of(state.size());
  const tbb::global_control limit{tbb::global_control::max_allowed_parallelism, threads + 1};
  tbb::task_arena arena{static_cast<int>(threads + 1)};
  counted all;
  if (is_from_inside(state.size()))
    state.measure(bulk_tasks, bulk_tasks, [&] {
      arena.enqueue([&] {
        tbb::task_group group;
        for (std::size_t i = 0; i != bulk_tasks - 1; ++i) group.run([&all] { all.ended(); });
        group.wait();
        all.ended();
      });
      return all.wait();
    });
  else
    state.measure(bulk_tasks, bulk_tasks, [&] {
      for (std::size_t i = 0; i != bulk_tasks; ++i) arena.enqueue([&all] { all.ended(); });
      return all.wait();
    });
}

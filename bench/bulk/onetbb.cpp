// A task_group, whose tasks are functions. From outside they are enqueued, and who waits for the group works on it: it has the
// one slot of an arena that is kept for the thread that made it, so there are as many threads besides.
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <tbb/global_control.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

#include <atomic>

void bench::run(bench::state& state) {
  const std::size_t threads = threads_of(state.size());
  const tbb::global_control limit{tbb::global_control::max_allowed_parallelism, threads + 1};
  tbb::task_arena arena{static_cast<int>(threads + 1)};
  marks all;
  if (is_from_inside(state.size()))
    state.measure(bulk_tasks, bulk_tasks, [&] {
      std::atomic<bool> joined{false};
      arena.enqueue([&] {
        tbb::task_group group;
        for (std::size_t i = 0; i != bulk_tasks; ++i) group.run([&all, i] { all.set(i); });
        group.wait();
        joined.store(true, std::memory_order_release);
        joined.notify_one();
      });
      joined.wait(false, std::memory_order_acquire);
      return all.take();
    });
  else
    state.measure(bulk_tasks, bulk_tasks, [&] {
      tbb::task_group group;
      for (std::size_t i = 0; i != bulk_tasks; ++i) arena.enqueue(group.defer([&all, i] { all.set(i); }));
      arena.execute([&] { group.wait(); });
      return all.take();
    });
}

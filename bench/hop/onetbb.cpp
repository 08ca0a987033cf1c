// Has no tasks that wait: each is a chain of jobs, each of which enqueues the next in the other arena. One slot of an arena
// is kept for the thread that made it, so each has two.
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <tbb/global_control.h>
#include <tbb/task_arena.h>
#include <atomic>
#include <vector>

namespace {

struct hopper {
  tbb::task_arena& one;
  tbb::task_arena& other;
  std::atomic<std::size_t>& ended;
  std::size_t left = bench::hop_rounds;

  void next() {
    if (left-- != 0) return other.enqueue([this] { one.enqueue([this] { next(); }); });
    if (ended.fetch_add(1, std::memory_order_acq_rel) + 1 == bench::hop_tasks) ended.notify_one();
  }
};

}  // namespace

void bench::run(bench::state& state) {
  const tbb::global_control limit{tbb::global_control::max_allowed_parallelism, 3};
  tbb::task_arena one{2}, other{2};
  const std::size_t hops = hop_tasks * hop_rounds;
  std::atomic<std::size_t> ended{0};  // here, since the last one may still notify
  state.measure(hops, hops, [&] {
    ended.store(0, std::memory_order_relaxed);
    std::vector<hopper> all(hop_tasks, hopper{one, other, ended});
    for (hopper& each : all) one.enqueue([&each] { each.next(); });
    for (std::size_t now; (now = ended.load(std::memory_order_acquire)) != hop_tasks;) ended.wait(now);
    return hop_tasks * hop_rounds;
  });
}

#include "pool/process_forks.hpp"

#include <pthread.h>

#include "core/worker.hpp"
#include "sched/pool_worker.hpp"

namespace weft::detail {

constinit std::atomic<std::uint32_t> forks_of_process{0};

namespace {

// In the child. A worker that forked goes on there with its current job, and looks outside after it, by which it learns of
// the fork: the jobs in its line are for the parent to run.
void count_fork() noexcept {
  forks_of_process.fetch_add(1, std::memory_order_relaxed);  // as declared
  pool_worker* const mine = worker_of_thread != nullptr ? worker_of_thread->of_pool : nullptr;
  if (mine != nullptr) mine->looks_outside_at = mine->jobs.get();
}

}  // namespace

// Not once by the guard of a static, which a child forked meanwhile would find taken for ever. Two threads that come here at
// once have each fork counted twice, and any number is as good.
void count_forks() noexcept {
  // Relaxed: who sees it too late registers once more, and pthread_atfork() takes a lock of its own.
  static constinit std::atomic<bool> counts{false};
  if (counts.load(std::memory_order_relaxed)) return;
  ::pthread_atfork(nullptr, nullptr, count_fork);
  counts.store(true, std::memory_order_relaxed);
}

}  // namespace weft::detail

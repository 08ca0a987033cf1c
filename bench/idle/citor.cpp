// Nothing is posted to this pool: who calls it works along, and waits. So there is one thread more, a call of all of them,
// and the flag is for the others. What is posted detached gets a new thread each time, and is none of the pool's.
#include "workload.hpp"

#include <citor/thread_pool.h>

void bench::run(bench::state& state) {
  const std::size_t all = threads_of(state.size()) + 1;
  citor::ThreadPool pool{all};
  wake_ups(state, [&](std::atomic<bool>& ran) {
    pool.runPlex<citor::HintsDefaults>(1, all, [&](std::size_t, std::size_t who, std::size_t, std::size_t) {
      if (who != 0) ran.store(true, std::memory_order_release);
    });
  });
}

// What pools and strands keep in each worker, beside its place in a pool (sched/pool_worker.hpp).
#pragma once

#include <weft/executor.hpp>

namespace weft::detail {

struct pool_slot {
  // One that stands on the pool of this thread, perhaps on other pools, too, and at one of whose jobs the thread is.
  const executor* strand = nullptr;
  const void* only_for = nullptr;  // the new_thread_executor, or blocking pool, that this is a thread of
};

}  // namespace weft::detail

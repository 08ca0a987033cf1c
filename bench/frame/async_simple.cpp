#include "workload.hpp"

#include "../harness/harness.hpp"

#include <async_simple/coro/Lazy.h>
#include <async_simple/coro/SyncAwait.h>

void bench::run(bench::state& state) {
  measure_frames<async_simple::coro::Lazy>(state,
                                           [](auto task) { return async_simple::coro::syncAwait(std::move(task)); });
}

#include "workload.hpp"

#include "../harness/harness.hpp"

#include <coro/sync_wait.hpp>
#include <coro/task.hpp>

void bench::run(bench::state& state) {
  measure_frames<coro::task>(state, [](auto task) { return coro::sync_wait(std::move(task)); });
}

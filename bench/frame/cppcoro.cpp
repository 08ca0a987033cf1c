#include "workload.hpp"

#include "../harness/harness.hpp"

#include <cppcoro/sync_wait.hpp>
#include <cppcoro/task.hpp>

void bench::run(bench::state& state) {
  measure_frames<cppcoro::task>(state, [](auto task) { return cppcoro::sync_wait(std::move(task)); });
}

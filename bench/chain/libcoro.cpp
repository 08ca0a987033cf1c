#include "workload.hpp"

#include "../harness/harness.hpp"

#include <coro/sync_wait.hpp>
#include <coro/task.hpp>

void bench::run(bench::state& state) {
  state.measure(chain_levels, chain_result, [] { return coro::sync_wait(lazy_fn<coro::task, chain_levels>()); });
}

#include "workload.hpp"

#include "../harness/harness.hpp"

#include <coro/sync_wait.hpp>
#include <coro/task.hpp>
#include <coro/when_all.hpp>

void bench::run(bench::state& state) {
  state.measure(1, collect_all_result, [] {
    const auto chains = coro::sync_wait(coro::when_all(make_chains<coro::task>()));
    long sum = 0;
    for (const auto& chain : chains) sum += chain.return_value();
    return sum;
  });
}

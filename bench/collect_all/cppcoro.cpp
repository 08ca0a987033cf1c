#include "workload.hpp"

#include "../harness/harness.hpp"

#include <cppcoro/sync_wait.hpp>
#include <cppcoro/task.hpp>
#include <cppcoro/when_all.hpp>
#include <numeric>

void bench::run(bench::state& state) {
  state.measure(1, collect_all_result, [] {
    const auto results = cppcoro::sync_wait(cppcoro::when_all(make_chains<cppcoro::task>()));
    return std::accumulate(results.begin(), results.end(), 0L);
  });
}

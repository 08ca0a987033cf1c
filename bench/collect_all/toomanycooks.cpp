// spawn_many on the executor that is pumped by hand, with the two options that the library's own benchmarks set.
#include "workload.hpp"

#include "../harness/harness.hpp"

#define TMC_PRIORITY_COUNT 1
#define TMC_TRIVIAL_TASK
#include <numeric>
#include <tmc/ex_manual_st.hpp>
#include <tmc/spawn_many.hpp>
#include <tmc/sync.hpp>
#include <tmc/task.hpp>

static tmc::task<long> collect_all() {
  auto chains = bench::make_chains<tmc::task>();
  const auto results = co_await tmc::spawn_many(chains);
  co_return std::accumulate(results.begin(), results.end(), 0L);
}

void bench::run(bench::state& state) {
  tmc::ex_manual_st executor;
  executor.init();
  state.measure(1, collect_all_result, [&] {
    auto sum = tmc::post_waitable(executor, collect_all());
    executor.run_all();
    return sum.get();
  });
}

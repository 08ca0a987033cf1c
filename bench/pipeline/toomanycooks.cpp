// spawn_many on the library's own pool, with the two options that its own benchmarks set.
#include "workload.hpp"

#define TMC_PRIORITY_COUNT 1
#define TMC_TRIVIAL_TASK
#define TMC_IMPL
#include <numeric>
#include <tmc/all_headers.hpp>
#include <vector>

static tmc::task<long> stage(long value, long stages) {
  if (stages == 1) co_return value + 1;
  co_return co_await stage(value + 1, stages - 1);
}

static tmc::task<long> pipeline(long first, long stages) {
  long last = 0;
  for (std::size_t i = 0; i != bench::items_a_pipeline; ++i)
    last = co_await stage(first + static_cast<long>(i), stages);
  co_return last;
}

static tmc::task<long> all_pipelines(long stages) {
  std::vector<tmc::task<long>> all;
  for (std::size_t n = 0; n != bench::pipelines; ++n) all.push_back(pipeline(static_cast<long>(n), stages));
  const auto last = co_await tmc::spawn_many(all);
  co_return std::accumulate(last.begin(), last.end(), 0L);
}

void bench::run(bench::state& state) {
  const auto stages = static_cast<long>(state.size());
  tmc::cpu_executor().init();
  state.measure(pipelines * items_a_pipeline, last_items(stages),
                [&] { return tmc::post_waitable(tmc::cpu_executor(), all_pipelines(stages), 0).get(); });
  tmc::cpu_executor().teardown();
}

#include "workload.hpp"

#include <cppcoro/static_thread_pool.hpp>
#include <cppcoro/sync_wait.hpp>
#include <cppcoro/task.hpp>
#include <cppcoro/when_all.hpp>
#include <numeric>
#include <vector>

namespace {

cppcoro::task<long> stage(long value, long stages) {
  if (stages == 1) co_return value + 1;
  co_return co_await stage(value + 1, stages - 1);
}

cppcoro::task<long> pipeline(cppcoro::static_thread_pool& workers, long first, long stages) {
  co_await workers.schedule();
  long last = 0;
  for (std::size_t i = 0; i != bench::items_a_pipeline; ++i)
    last = co_await stage(first + static_cast<long>(i), stages);
  co_return last;
}

}  // namespace

void bench::run(bench::state& state) {
  const auto stages = static_cast<long>(state.size());
  cppcoro::static_thread_pool workers;
  state.measure(pipelines * items_a_pipeline, last_items(stages), [&] {
    std::vector<cppcoro::task<long>> all;
    for (std::size_t n = 0; n != pipelines; ++n) all.push_back(pipeline(workers, static_cast<long>(n), stages));
    const auto last = cppcoro::sync_wait(cppcoro::when_all(std::move(all)));
    return std::accumulate(last.begin(), last.end(), 0L);
  });
}

#include "workload.hpp"

#include <coro/sync_wait.hpp>
#include <coro/task.hpp>
#include <coro/thread_pool.hpp>
#include <coro/when_all.hpp>
#include <vector>

namespace {

coro::task<long> stage(long value, long stages) {
  if (stages == 1) co_return value + 1;
  co_return co_await stage(value + 1, stages - 1);
}

coro::task<long> pipeline(coro::thread_pool& workers, long first, long stages) {
  co_await workers.schedule();
  long last = 0;
  for (std::size_t i = 0; i != bench::items_a_pipeline; ++i)
    last = co_await stage(first + static_cast<long>(i), stages);
  co_return last;
}

}  // namespace

void bench::run(bench::state& state) {
  const auto stages = static_cast<long>(state.size());
  auto workers = coro::thread_pool::make_unique();
  state.measure(pipelines * items_a_pipeline, last_items(stages), [&] {
    std::vector<coro::task<long>> all;
    for (std::size_t n = 0; n != pipelines; ++n) all.push_back(pipeline(*workers, static_cast<long>(n), stages));
    auto ended = coro::sync_wait(coro::when_all(std::move(all)));
    long sum = 0;
    for (auto& one : ended) sum += one.return_value();
    return sum;
  });
}

#include "workload.hpp"

#include <vector>
#include <weft/combine.hpp>
#include <weft/pool.hpp>
#include <weft/scope.hpp>

namespace {

weft::task<long> stage(long value, long stages) {
  if (stages == 1) co_return value + 1;
  co_return co_await stage(value + 1, stages - 1);
}

weft::task<long> pipeline(long first, long stages) {
  long last = 0;
  for (std::size_t i = 0; i != bench::items_a_pipeline; ++i)
    last = co_await stage(first + static_cast<long>(i), stages);
  co_return last;
}

weft::task<long> all_pipelines(weft::scope& s, weft::executor& workers, long stages) {
  std::vector<weft::fork<long>> running;
  for (std::size_t n = 0; n != bench::pipelines; ++n)
    running.push_back(s.fork_on(workers, pipeline(static_cast<long>(n), stages)));
  long sum = 0;
  for (weft::fork<long>& one : running) sum += co_await std::move(one);
  co_return sum;
}

}  // namespace

void bench::run(bench::state& state) {
  const auto stages = static_cast<long>(state.size());
  weft::pool workers;
  state.measure(pipelines * items_a_pipeline, last_items(stages),
                [&] { return weft::sync_wait(weft::with_scope(all_pipelines, std::ref(workers.executor()), stages)); });
}

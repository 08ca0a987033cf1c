#include "workload.hpp"

#include <coflux/executor.hpp>
#include <coflux/scheduler.hpp>
#include <coflux/task.hpp>
#include <memory_resource>
#include <vector>

namespace {

using executor = coflux::thread_pool_executor<>;
using scheduler = coflux::scheduler<executor>;

coflux::fork<long, executor> stage(auto&&, long value, long stages) {
  if (stages == 1) co_return value + 1;
  co_return co_await stage(co_await coflux::context(), value + 1, stages - 1);
}

coflux::fork<void, executor> pipeline(auto&&, long first, long stages, long& last) {
  for (std::size_t i = 0; i != bench::items_a_pipeline; ++i)
    last = co_await stage(co_await coflux::context(), first + static_cast<long>(i), stages);
}

coflux::task<void, executor, scheduler> all_pipelines(auto, long stages, std::vector<long>& last) {
  auto&& context = co_await coflux::context();
  for (std::size_t n = 0; n != bench::pipelines; ++n) pipeline(context, static_cast<long>(n), stages, last[n]);
}

}  // namespace

void bench::run(bench::state& state) {
  const auto stages = static_cast<long>(state.size());
  std::pmr::synchronized_pool_resource memory;
  auto environment = coflux::make_environment(&memory, scheduler{});
  state.measure(pipelines * items_a_pipeline, last_items(stages), [&] {
    std::vector<long> last(pipelines);
    {
      auto task = all_pipelines(environment, stages, last);
      task.join();
    }
    long sum = 0;
    for (const long one : last) sum += one;
    return sum;
  });
}

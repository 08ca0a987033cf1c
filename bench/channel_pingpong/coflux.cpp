// channel<T[]>, on a thread pool.
#include "workload.hpp"

#include <coflux/channel.hpp>
#include <coflux/executor.hpp>
#include <coflux/scheduler.hpp>
#include <coflux/task.hpp>
#include <memory_resource>

namespace {

using executor = coflux::thread_pool_executor<>;
using scheduler = coflux::scheduler<executor>;
using channel = coflux::channel<std::size_t[]>;

coflux::fork<void, executor> echo(auto&&, channel& there, channel& back) {
  for (std::size_t i = 0; i != bench::pingpong_rounds; ++i) {
    std::size_t number = 0;
    if (!co_await (there >> number)) co_return;
    if (!co_await (back << number + 1)) co_return;
  }
}

coflux::task<std::size_t, executor, scheduler> call(auto, channel& there, channel& back) {
  echo(co_await coflux::context(), there, back);
  std::size_t number = 0;
  for (std::size_t i = 0; i != bench::pingpong_rounds; ++i) {
    const std::size_t sent = number;
    if (!co_await (there << sent)) co_return 0;
    if (!co_await (back >> number)) co_return 0;
  }
  co_return number;
}

}  // namespace

void bench::run(bench::state& state) {
  std::pmr::synchronized_pool_resource memory;
  auto environment = coflux::make_environment(&memory, scheduler{executor{state.size()}});
  state.measure(pingpong_rounds, pingpong_rounds, [&] {
    channel there, back;
    auto task = call(environment, there, back);
    return task.get_result();
  });
}

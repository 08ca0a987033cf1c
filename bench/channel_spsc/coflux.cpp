// channel<T[N]>, on a thread pool. A send or receive for which it is not ready goes to the pool and back, and is tried
// again here.
#include "workload.hpp"

#include <coflux/channel.hpp>
#include <coflux/executor.hpp>
#include <coflux/scheduler.hpp>
#include <coflux/task.hpp>
#include <memory_resource>

namespace {

using executor = coflux::thread_pool_executor<>;
using scheduler = coflux::scheduler<executor>;
using channel = coflux::channel<std::size_t[bench::spsc_room]>;

coflux::fork<void, executor> send_all(auto&&, channel& to) {
  for (std::size_t i = 0; i != bench::spsc_numbers; ++i)
    while (!co_await (to << i)) {
    }
}

coflux::task<std::size_t, executor, scheduler> both(auto, channel& numbers) {
  send_all(co_await coflux::context(), numbers);
  std::size_t sum = 0;
  for (std::size_t i = 0; i != bench::spsc_numbers; ++i) {
    std::size_t number = 0;
    while (!co_await (numbers >> number)) {
    }
    sum += number;
  }
  co_return sum;
}

}  // namespace

void bench::run(bench::state& state) {
  std::pmr::synchronized_pool_resource memory;
  auto environment = coflux::make_environment(&memory, scheduler{executor{state.size()}});
  state.measure(spsc_numbers, spsc_sum, [&] {
    channel numbers;
    auto task = both(environment, numbers);
    return task.get_result();
  });
}

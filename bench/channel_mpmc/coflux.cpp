// channel<T[N]>, on a thread pool. A send or receive for which it is not ready goes to the pool and back, and is tried
// again here.
#include "workload.hpp"

#include <array>
#include <coflux/channel.hpp>
#include <coflux/executor.hpp>
#include <coflux/scheduler.hpp>
#include <coflux/task.hpp>
#include <memory_resource>
#include <numeric>

namespace {

using executor = coflux::thread_pool_executor<>;
using scheduler = coflux::scheduler<executor>;
using channel = coflux::channel<std::size_t[bench::mpmc_room]>;

coflux::fork<void, executor> send(auto&&, channel& to, std::size_t first, std::size_t end) {
  for (; first != end; ++first)
    while (!co_await (to << first)) {
    }
}

coflux::fork<void, executor> receive(auto&&, channel& from, std::size_t count, std::size_t& sum) {
  for (; count != 0; --count) {
    std::size_t number = 0;
    while (!co_await (from >> number)) {
    }
    sum += number;
  }
}

coflux::task<void, executor, scheduler> all(auto, channel& numbers, std::size_t count,
                                            std::array<std::size_t, bench::mpmc_receivers>& sums) {
  auto&& context = co_await coflux::context();
  const std::size_t sent = count / bench::mpmc_senders, received = count / bench::mpmc_receivers;
  for (std::size_t i = 0; i != bench::mpmc_senders; ++i) send(context, numbers, i * sent, (i + 1) * sent);
  for (auto& sum : sums) receive(context, numbers, received, sum);
}

}  // namespace

void bench::run(bench::state& state) {
  std::pmr::synchronized_pool_resource memory;
  auto environment = coflux::make_environment(&memory, scheduler{executor{mpmc_threads}});
  state.measure(state.size(), sum_of_numbers(state.size()), [&] {
    channel numbers;
    std::array<std::size_t, mpmc_receivers> sums{};
    {
      auto task = all(environment, numbers, state.size(), sums);
      task.join();
    }
    return std::accumulate(sums.begin(), sums.end(), std::size_t{0});
  });
}

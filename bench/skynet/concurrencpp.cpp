// A node's children are started on the pool.
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <concurrencpp/concurrencpp.h>
#include <array>
#include <memory>

using pool = std::shared_ptr<concurrencpp::thread_pool_executor>;

static concurrencpp::result<long> skynet(concurrencpp::executor_tag, pool on, long number, int depth) {
  if (depth == 0) co_return number;
  std::array<concurrencpp::result<long>, bench::skynet_width> below;
  for (std::size_t i = 0; i != below.size(); ++i)
    below[i] = skynet({}, on, number * 10 + static_cast<long>(i), depth - 1);
  long sum = 0;
  for (auto& each : below) sum += co_await each;
  co_return sum;
}

void bench::run(bench::state& state) {
  const auto on =
      std::make_shared<concurrencpp::thread_pool_executor>("skynet", state.size(), std::chrono::seconds{60});
  state.measure(1, skynet_result, [&] { return skynet({}, on, 0L, skynet_depth).get(); });
  on->shutdown();
}

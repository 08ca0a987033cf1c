#include "workload.hpp"

#include <concurrencpp/concurrencpp.h>
#include <memory>

void bench::run(bench::state& state) {
  const auto pool =
      std::make_shared<concurrencpp::thread_pool_executor>("idle", threads_of(state.size()), std::chrono::seconds{60});
  wake_ups(state, [&](std::atomic<bool>& ran) { pool->post([&ran] { ran.store(true, std::memory_order_release); }); });
  pool->shutdown();
}

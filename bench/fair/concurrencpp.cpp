#include "workload.hpp"

#include <concurrencpp/concurrencpp.h>
#include <memory>
#include <vector>

namespace {

using pool = std::shared_ptr<concurrencpp::thread_pool_executor>;

concurrencpp::result<void> yields(pool on, const std::atomic<bool>& over) {
  while (!over.load(std::memory_order_relaxed)) co_await concurrencpp::resume_on(on);
}

}  // namespace

void bench::run(bench::state& state) {
  const auto on = std::make_shared<concurrencpp::thread_pool_executor>("fair", state.size(), std::chrono::seconds{60});
  std::atomic<bool> over{false};
  std::vector<concurrencpp::result<void>> ends;
  for (std::size_t i = 0; i != yielding_tasks; ++i) ends.push_back(yields(on, over));
  short_ones(state, over,
             [&](std::atomic<bool>& ran) { on->post([&ran] { ran.store(true, std::memory_order_release); }); });
  over = true;
  for (auto& each : ends) each.get();
  on->shutdown();
}

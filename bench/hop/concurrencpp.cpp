#include "workload.hpp"

#include "../harness/harness.hpp"

#include <concurrencpp/concurrencpp.h>
#include <memory>
#include <vector>

namespace {

using pool = std::shared_ptr<concurrencpp::thread_pool_executor>;

concurrencpp::result<std::size_t> hop(pool one, pool other) {
  co_await concurrencpp::resume_on(one);
  for (std::size_t i = 0; i != bench::hop_rounds; ++i) {
    co_await concurrencpp::resume_on(other);
    co_await concurrencpp::resume_on(one);
  }
  co_return bench::hop_rounds;
}

}  // namespace

void bench::run(bench::state& state) {
  concurrencpp::runtime runtime;
  const auto make = [](const char* name) {
    return std::make_shared<concurrencpp::thread_pool_executor>(name, 1, std::chrono::seconds{60});
  };
  const pool one = make("one"), other = make("other");
  const std::size_t hops = hop_tasks * hop_rounds;
  state.measure(hops, hops, [&] {
    std::vector<concurrencpp::result<std::size_t>> all;
    for (std::size_t i = 0; i != hop_tasks; ++i) all.push_back(hop(one, other));
    std::size_t sum = 0;
    for (auto& each : all) sum += each.get();
    return sum;
  });
  one->shutdown();
  other->shutdown();
}

// Its pools take a job that comes from a thread of any pool for one of their own, so most of these hops stay on the thread:
// how many, is reported.
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <concurrencpp/concurrencpp.h>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace {

using pool = std::shared_ptr<concurrencpp::thread_pool_executor>;

std::atomic<std::size_t> tasks{0}, stayed{0};

concurrencpp::result<std::size_t> hop(pool one, pool other) {
  co_await concurrencpp::resume_on(one);
  std::size_t on_the_same = 0;
  for (std::size_t i = 0; i != bench::hop_rounds; ++i) {
    const std::thread::id here = std::this_thread::get_id();
    co_await concurrencpp::resume_on(other);
    if (std::this_thread::get_id() == here) ++on_the_same;
    co_await concurrencpp::resume_on(one);
  }
  tasks.fetch_add(1, std::memory_order_relaxed);
  stayed.fetch_add(on_the_same, std::memory_order_relaxed);
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
  state.report("stayed, %", 100.0 * static_cast<double>(stayed) / static_cast<double>(tasks * hop_rounds));
  one->shutdown();
  other->shutdown();
}

// It has no yield: each resumes itself on the pool that it is on.
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <concurrencpp/concurrencpp.h>
#include <memory>
#include <vector>

using pool = std::shared_ptr<concurrencpp::thread_pool_executor>;

static concurrencpp::result<std::size_t> yields(concurrencpp::executor_tag, pool on) {
  for (std::size_t i = 0; i != bench::switch_rounds; ++i) co_await concurrencpp::resume_on(on);
  co_return bench::switch_rounds;
}

void bench::run(bench::state& state) {
  const auto on = std::make_shared<concurrencpp::thread_pool_executor>("switch_mt", threads_of(state.size()),
                                                                       std::chrono::seconds{60});
  const std::size_t coroutines = coroutines_of(state.size()), switches = coroutines * switch_rounds;
  state.measure(switches, switches, [&] {
    std::vector<concurrencpp::result<std::size_t>> all;
    for (std::size_t i = 0; i != coroutines; ++i) all.push_back(yields({}, on));
    std::size_t switched = 0;
    for (auto& each : all) switched += each.get();
    return switched;
  });
  on->shutdown();
}

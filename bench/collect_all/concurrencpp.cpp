// concurrencpp joins results, which are tasks that run already; each chain becomes one on the calling thread.
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <concurrencpp/concurrencpp.h>
#include <memory>
#include <vector>

void bench::run(bench::state& state) {
  const auto executor = std::make_shared<concurrencpp::inline_executor>();
  state.measure(1, collect_all_result, [&] {
    std::vector<concurrencpp::result<int>> running;
    for (auto& chain : make_chains<concurrencpp::lazy_result>()) running.push_back(chain.run());

    long sum = 0;
    for (auto& finished : concurrencpp::when_all(executor, running.begin(), running.end()).run().get()) {
      sum += finished.get();
    }
    return sum;
  });
}

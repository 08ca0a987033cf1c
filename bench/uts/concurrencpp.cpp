// A node's children are started on the pool.
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <concurrencpp/concurrencpp.h>
#include <memory>
#include <vector>

using pool = std::shared_ptr<concurrencpp::thread_pool_executor>;

static concurrencpp::result<std::size_t> count(concurrencpp::executor_tag, pool on, bench::uts_node node) {
  std::vector<concurrencpp::result<std::size_t>> below(node.children());
  for (unsigned i = 0; i != below.size(); ++i) below[i] = count({}, on, node.child(i));
  std::size_t nodes = 1;
  for (auto& each : below) nodes += co_await each;
  co_return nodes;
}

void bench::run(bench::state& state) {
  const std::size_t threads = uts_threads(state.size());
  const auto on = std::make_shared<concurrencpp::thread_pool_executor>("uts", threads, std::chrono::seconds{60});
  state.measure(uts->nodes, uts->nodes, [&] { return count({}, on, uts_root()).get(); });
  on->shutdown();
}

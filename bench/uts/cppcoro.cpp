// when_all of a node's children, each scheduled on the pool.
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <cppcoro/schedule_on.hpp>
#include <cppcoro/static_thread_pool.hpp>
#include <cppcoro/sync_wait.hpp>
#include <cppcoro/task.hpp>
#include <cppcoro/when_all.hpp>
#include <numeric>
#include <vector>

static cppcoro::task<std::size_t> count(cppcoro::static_thread_pool& pool, bench::uts_node node) {
  std::vector<cppcoro::task<std::size_t>> below(node.children());
  for (unsigned i = 0; i != below.size(); ++i) below[i] = cppcoro::schedule_on(pool, count(pool, node.child(i)));
  const auto nodes = co_await cppcoro::when_all(std::move(below));
  co_return std::accumulate(nodes.begin(), nodes.end(), std::size_t{1});
}

void bench::run(bench::state& state) {
  cppcoro::static_thread_pool pool{static_cast<std::uint32_t>(uts_threads(state.size()))};
  state.measure(uts->nodes, uts->nodes,
                [&] { return cppcoro::sync_wait(cppcoro::schedule_on(pool, count(pool, uts_root()))); });
}

// when_all of a node's children, each scheduled on the pool.
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <coro/sync_wait.hpp>
#include <coro/task.hpp>
#include <coro/thread_pool.hpp>
#include <coro/when_all.hpp>
#include <vector>

static coro::task<std::size_t> count(coro::thread_pool& pool, bench::uts_node node) {
  std::vector<coro::task<std::size_t>> below(node.children());
  if (below.empty()) co_return 1;
  for (unsigned i = 0; i != below.size(); ++i) below[i] = pool.schedule(count(pool, node.child(i)));
  auto ended = co_await coro::when_all(std::move(below));
  std::size_t nodes = 1;
  for (auto& each : ended) nodes += each.return_value();
  co_return nodes;
}

void bench::run(bench::state& state) {
  const auto threads = static_cast<std::uint32_t>(uts_threads(state.size()));
  const auto pool = coro::thread_pool::make_unique({.thread_count = threads});
  state.measure(uts->nodes, uts->nodes, [&] { return coro::sync_wait(pool->schedule(count(*pool, uts_root()))); });
}

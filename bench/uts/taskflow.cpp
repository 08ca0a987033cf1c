// A task group for each node: all children but the last are spawned, that one is a call.
#include "deep_stacks.hpp"
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <numeric>
#include <taskflow/taskflow.hpp>
#include <vector>

static std::size_t count(tf::Executor& executor, const bench::uts_node& node) {
  const unsigned children = node.children();
  if (children == 0) return 1;
  std::vector<std::size_t> nodes(children);
  auto all = executor.task_group();
  for (unsigned i = 0; i + 1 < children; ++i) all.silent_async([&, i] { nodes[i] = count(executor, node.child(i)); });
  nodes[children - 1] = count(executor, node.child(children - 1));
  all.corun();
  return std::accumulate(nodes.begin(), nodes.end(), std::size_t{1});
}

void bench::run(bench::state& state) {
  const std::size_t threads = uts_threads(state.size());
  on_deep_stack([&] {
    tf::Executor executor{threads};
    state.measure(uts->nodes, uts->nodes,
                  [&] { return executor.async([&] { return count(executor, uts_root()); }).get(); });
  });
}

// A task group for each node: all children but the last are spawned, that one is a call.
#include "deep_stacks.hpp"
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <tbb/global_control.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>
#include <numeric>
#include <vector>

static std::size_t count(const bench::uts_node& node) {
  const unsigned children = node.children();
  if (children == 0) return 1;
  std::vector<std::size_t> nodes(children);
  tbb::task_group all;
  for (unsigned i = 0; i + 1 < children; ++i) all.run([&nodes, &node, i] { nodes[i] = count(node.child(i)); });
  nodes[children - 1] = count(node.child(children - 1));
  all.wait();
  return std::accumulate(nodes.begin(), nodes.end(), std::size_t{1});
}

void bench::run(bench::state& state) {
  const std::size_t threads = uts_threads(state.size());
  on_deep_stack([&] {
    const tbb::global_control limit{tbb::global_control::max_allowed_parallelism, threads};
    const tbb::global_control stacks{tbb::global_control::thread_stack_size, deep_stack};
    tbb::task_arena arena{static_cast<int>(threads)};
    state.measure(uts->nodes, uts->nodes, [&] { return arena.execute([&] { return count(uts_root()); }); });
  });
}

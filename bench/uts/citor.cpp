// A fork of two halves of a node's children, down to one.
#include "deep_stacks.hpp"
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <citor/thread_pool.h>

static std::size_t count(citor::ThreadPool& pool, const bench::uts_node& node);

static std::size_t count_children(citor::ThreadPool& pool, const bench::uts_node& node, unsigned from, unsigned to) {
  if (to - from == 1) return count(pool, node.child(from));
  const unsigned middle = from + (to - from) / 2;
  std::size_t left = 0, right = 0;
  pool.forkJoin<citor::CcdLocalForkJoinHints>([&] { left = count_children(pool, node, from, middle); },
                                              [&] { right = count_children(pool, node, middle, to); });
  return left + right;
}

static std::size_t count(citor::ThreadPool& pool, const bench::uts_node& node) {
  const unsigned children = node.children();
  return children == 0 ? 1 : 1 + count_children(pool, node, 0, children);
}

void bench::run(bench::state& state) {
  const std::size_t threads = uts_threads(state.size());
  on_deep_stack([&] {
    citor::ThreadPool pool{threads};
    state.measure(uts->nodes, uts->nodes, [&] { return count(pool, uts_root()); });
  });
}

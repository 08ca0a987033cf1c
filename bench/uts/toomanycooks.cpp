// spawn_many of a node's children, on the library's own pool.
#include "workload.hpp"

#include "../harness/harness.hpp"

#define TMC_PRIORITY_COUNT 1
#define TMC_TRIVIAL_TASK
#define TMC_IMPL
#include <numeric>
#include <tmc/all_headers.hpp>
#include <vector>

static tmc::task<std::size_t> count(bench::uts_node node) {
  const unsigned children = node.children();
  if (children == 0) co_return 1;
  std::vector<tmc::task<std::size_t>> below(children);
  for (unsigned i = 0; i != children; ++i) below[i] = count(node.child(i));
  const std::vector<std::size_t> nodes = co_await tmc::spawn_many(below.begin(), children);
  co_return std::accumulate(nodes.begin(), nodes.end(), std::size_t{1});
}

void bench::run(bench::state& state) {
  const std::size_t threads = uts_threads(state.size());
  tmc::cpu_executor().set_thread_count(threads).init();
  state.measure(uts->nodes, uts->nodes,
                [&] { return tmc::post_waitable(tmc::cpu_executor(), count(uts_root()), 0).get(); });
  tmc::cpu_executor().teardown();
}

#include "workload.hpp"

#include "../harness/harness.hpp"

#include <libfork/core.hpp>
#include <libfork/schedule.hpp>
#include <numeric>
#include <vector>

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // call(…) is the spelling that g++ 12 knows, too

namespace {

constexpr auto count = [](auto count, bench::uts_node node) -> lf::task<std::size_t> {
  const unsigned children = node.children();
  if (children == 0) co_return 1;
  std::vector<std::size_t> nodes(children);
  for (unsigned i = 0; i + 1 < children; ++i) co_await lf::fork(&nodes[i], count)(node.child(i));
  co_await lf::call(&nodes[children - 1], count)(node.child(children - 1));
  co_await lf::join;
  co_return std::accumulate(nodes.begin(), nodes.end(), std::size_t{1});
};

}  // namespace

void bench::run(bench::state& state) {
  const std::size_t threads = uts_threads(state.size());
  lf::lazy_pool pool{threads};
  state.measure(uts->nodes, uts->nodes, [&] { return lf::sync_wait(pool, count, uts_root()); });
}

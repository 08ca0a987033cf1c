#include "workload.hpp"

#include "../harness/harness.hpp"

#include <numeric>
#include <vector>
#include <weft/combine.hpp>
#include <weft/pool.hpp>

namespace {

weft::task<std::size_t> count(bench::uts_node node) {
  const unsigned children = node.children();
  if (children == 0) co_return 1;
  const auto below = [&](std::size_t which) { return count(node.child(static_cast<unsigned>(which))); };
  const std::vector<std::size_t> nodes = co_await weft::when_all(children, below);
  co_return std::accumulate(nodes.begin(), nodes.end(), std::size_t{1});
}

}  // namespace

void bench::run(bench::state& state) {
  const std::size_t threads = uts_threads(state.size());
  const weft::pool pool{{.threads = static_cast<unsigned>(threads)}};
  state.measure(uts->nodes, uts->nodes,
                [&] { return weft::sync_wait(weft::start_on(pool.executor(), count(uts_root()))); });
}

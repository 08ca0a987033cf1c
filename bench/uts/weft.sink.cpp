// Without a vector of a node's counts: each is added as its child ends.
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <weft/combine.hpp>
#include <weft/pool.hpp>

namespace {

weft::task<std::size_t> count(bench::uts_node node) {
  const unsigned children = node.children();
  if (children == 0) co_return 1;
  const auto below = [&](std::size_t which) { return count(node.child(static_cast<unsigned>(which))); };
  std::size_t nodes = 1;
  co_await weft::when_all(children, below, [&](std::size_t one) { nodes += one; });
  co_return nodes;
}

}  // namespace

void bench::run(bench::state& state) {
  const std::size_t threads = uts_threads(state.size());
  const weft::pool pool{{.threads = static_cast<unsigned>(threads)}};
  state.measure(uts->nodes, uts->nodes,
                [&] { return weft::sync_wait(weft::start_on(pool.executor(), count(uts_root()))); });
}

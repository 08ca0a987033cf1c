#include "workload.hpp"

#include "../harness/corral_loop.hpp"

#include <functional>

namespace {

struct leaf_ends {
  std::size_t& count;
  ~leaf_ends() { ++count; }
};

// All leaves wait for one event.
corral::Task<void> leaf(corral::Event& never, std::size_t& ended) {
  const leaf_ends here{ended};
  co_await never;
}

corral::Task<void> node(int depth, corral::Event& never, std::size_t& ended) {
  CORRAL_WITH_NURSERY(nursery) {
    for (std::size_t i = 0; i != bench::children_of_a_node; ++i)
      if (depth == 1)
        nursery.start(leaf, std::ref(never), std::ref(ended));
      else
        nursery.start(node, depth - 1, std::ref(never), std::ref(ended));
    co_return corral::join;
  };
}

class tree {
 public:
  explicit tree(std::size_t leaves) {
    nursery_.start(node, bench::depth_of(leaves), std::ref(never_), std::ref(ended_));
  }
  tree(const tree&) = delete;

  std::size_t stop() {
    nursery_.close();
    return ended_;
  }

 private:
  std::size_t ended_ = 0;
  corral::Event never_;
  bench::no_events loop_;
  corral::UnsafeNursery nursery_{loop_};
};

}  // namespace

void bench::run(bench::state& state) { measure_cancel<tree>(state); }

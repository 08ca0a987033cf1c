#include "workload.hpp"

#include "../harness/corral_loop.hpp"

#include <algorithm>
#include <functional>

namespace {

corral::Task<void> trivial(std::size_t& ended) {
  ++ended;
  co_return;
}

corral::Task<std::size_t> forks(std::size_t count) {
  std::size_t ended = 0;
  CORRAL_WITH_NURSERY(nursery) {
    for (std::size_t i = 0; i != count; ++i) nursery.start(trivial, std::ref(ended));
    co_return corral::join;
  };
  co_return ended;
}

}  // namespace

// What is started in a nursery runs when its starter waits, and can't be awaited by itself: all are joined, and a call
// makes no more than 100,000.
void bench::run(bench::state& state) {
  const std::size_t count = std::min<std::size_t>(state.size(), 100'000);
  bench::no_events loop;
  state.measure(count, count, [&] { return corral::run(loop, forks(count)); });
}

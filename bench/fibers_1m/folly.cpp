// Fibers of one FiberManager, which guards a hundred of its stacks.
#include "workload.hpp"

#include "../harness/folly_fibers.hpp"

namespace {

struct coroutines {
  std::size_t count = 0;
  std::size_t size() const { return count; }
};

}  // namespace

void bench::run(bench::state& state) {
  folly_fibers fibers{stack_of_each, 0};  // none is kept for the next call
  std::size_t begun = 0, live = 0;
  bool over = false;
  const auto make = [&](std::size_t count) {
    begun = 0;
    over = false;
    for (std::size_t i = 0; i != count; ++i)
      fibers.add([&] {
        ++begun;
        ++live;
        while (!over) fibers.yield();
        --live;
      });
    while (begun != count) fibers.yield();
    return coroutines{count};
  };
  const auto end = [&](coroutines&) {
    over = true;
    while (live != 0) fibers.yield();
  };
  fibers.run([&] { measure_at_once(state, make, end); });
}

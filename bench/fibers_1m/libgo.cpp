// Without guards: stacks come from malloc. A coroutine begins when the one that made it yields.
#include "workload.hpp"

#include "../harness/libgo.hpp"

namespace {

struct coroutines {
  std::size_t count = 0;
  std::size_t size() const { return count; }
};

}  // namespace

void bench::run(bench::state& state) {
  std::size_t begun = 0, live = 0;
  bool over = false;
  const auto make = [&](std::size_t count) {
    begun = 0;
    over = false;
    for (std::size_t i = 0; i != count; ++i) go co_stack(stack_of_each)[&] {
        ++begun;
        ++live;
        while (!over) co_yield;
        --live;
      };
    while (begun != count) co_yield;
    return coroutines{count};
  };
  const auto end = [&](coroutines&) {
    over = true;
    while (live != 0) co_yield;
  };
  in_libgo([&] { measure_at_once(state, make, end); });
}

// Without hooks; its stacks come from malloc. A coroutine begins when the one that made it yields.
#include "workload.hpp"

#include "../harness/libgo.hpp"

void bench::run(bench::state& state) {
  in_libgo([&] {
    measure_creation(state, [](std::size_t count) {
      std::size_t ended = 0;
      for (std::size_t i = 0; i != count; ++i) go co_stack(created_stack)[&] {
          ++ended;
        };
      while (ended != count) co_yield;
      return ended;
    });
  });
}

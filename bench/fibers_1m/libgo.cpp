// Without guards: stacks come from malloc. A coroutine begins when the one that made it yields.
#include "workload.hpp"

// libgo's headers define __const__ away, which other headers mean, and take nullptr_t for a global name.
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>
using std::nullptr_t;

#include <libgo/coroutine.h>

namespace {

struct coroutines {
  std::size_t count = 0;
  std::size_t size() const { return count; }
};

}  // namespace

void bench::run(bench::state& state) {
  std::exception_ptr failure;
  std::size_t begun = 0, live = 0;
  bool over = false;
  go[&] {
    try {
      measure_at_once(
          state,
          [&](std::size_t count) {
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
          },
          [&](coroutines&) {
            over = true;
            while (live != 0) co_yield;
          });
    } catch (...) {
      failure = std::current_exception();
    }
    co_sched.Stop();
  };
  co_sched.Start(1);
  if (failure) std::rethrow_exception(failure);
}

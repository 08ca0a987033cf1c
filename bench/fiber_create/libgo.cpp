// Without hooks; its stacks come from malloc. A coroutine begins when the one that made it yields.
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

void bench::run(bench::state& state) {
  std::exception_ptr failure;
  go[&] {
    try {
      measure_creation(state, [](std::size_t count) {
        std::size_t ended = 0;
        for (std::size_t i = 0; i != count; ++i) go co_stack(created_stack)[&] {
            ++ended;
          };
        while (ended != count) co_yield;
        return ended;
      });
    } catch (...) {
      failure = std::current_exception();
    }
    co_sched.Stop();
  };
  co_sched.Start(1);
  if (failure) std::rethrow_exception(failure);
}

// Scheduled, without hooks: each coroutine yields to the next one of its processer. The one that measures is in that ring.
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
  std::size_t turns = 0;
  bool over = false;
  std::exception_ptr failure;
  for (std::size_t i = 0; i != state.size(); ++i) go co_stack(switch_stack)[&] {
      while (!over) {
        ++turns;
        co_yield;
      }
    };
  go[&] {
    try {
      measure_switches(state, turns, [] { co_yield; });
    } catch (...) {
      failure = std::current_exception();
    }
    over = true;
    co_sched.Stop();
  };
  co_sched.Start(1);
  if (failure) std::rethrow_exception(failure);
}

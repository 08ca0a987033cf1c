// fair: a hundred tasks that yield for ever keep a pool of --size threads busy; a short one comes from outside. One item is
// from its post until it runs. Where there are no coroutines, a function that posts itself again is such a task. Some pools
// never look at what comes from outside while they have work of their own: after five seconds the hundred are told to end,
// and that is the figure.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <thread>

#include "../harness/latencies.hpp"

namespace bench {

inline constexpr std::size_t yielding_tasks = 100;

/// `post(flag)` has the pool set it; `over` ends the others.
template <class Post>
void short_ones(state& state, std::atomic<bool>& over, Post post) {
  constexpr std::chrono::seconds limit{5};  // where one call takes that long, it is the only one
  struct given_up {};
  latencies all;
  try {
    state.measure(1, std::size_t{1}, [&] {
      const auto one = all.time(post, limit, [&] { over = true; });
      return over ? throw given_up{} : one;
    });
    all.report(state);
  } catch (given_up) {
    state.measure(1, 0, [&] { return std::this_thread::sleep_for(limit), 0; });
    state.report("given up after s", 5);
  }
}

}  // namespace bench

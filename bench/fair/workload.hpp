// fair: a hundred tasks that yield for ever keep a pool of --size threads busy; a short one comes from outside. One item is
// from its post until it runs. Where there are no coroutines, a function that posts itself again is such a task.
#pragma once

#include <cstddef>

#include "../harness/latencies.hpp"

namespace bench {

inline constexpr std::size_t yielding_tasks = 100;

/// `post(flag)` has the pool set it.
template <class Post>
void short_ones(state& state, Post post) {
  latencies all;
  state.measure(1, std::size_t{1}, [&] { return all.time(post); });
  all.report(state);
}

}  // namespace bench

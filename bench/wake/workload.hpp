// wake: a thread that waits for a connection, as a server with nothing to do does, gets a job from another thread. One item is
// from the post until the job runs: one way. The one that posts had slept for two milliseconds, and then waits without
// sleeping. Reported besides: the slow ones.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <thread>

#include "../harness/latencies.hpp"

namespace bench {

/// `post(flag)` has the other thread set it.
template <class Post>
void wake_ups(state& round, Post post) {
  latencies all;
  const auto rest = [] {
    std::this_thread::sleep_for(std::chrono::milliseconds{2});
    return 0;
  };
  round.measure(1, std::size_t{1}, rest, [&](int) { return all.time(post); });
  all.report(round);
}

}  // namespace bench

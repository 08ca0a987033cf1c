// idle: a pool of --size threads that has had nothing to do for two milliseconds gets a job from outside. One item is from
// the post until the job runs. Reported besides: the slow ones, and what the pool burns in a second without a job.
#pragma once

#include <chrono>
#include <ctime>
#include <thread>

#include "../harness/latencies.hpp"

namespace bench {

/// `post(flag)` has the pool set it.
template <class Post>
void wake_ups(state& state, Post post) {
  latencies all;
  const auto rest = [] {
    std::this_thread::sleep_for(std::chrono::milliseconds{2});
    return 0;
  };
  state.measure(1, std::size_t{1}, rest, [&](int) { return all.time(post); });
  all.report(state);
  const auto used = [] {
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) * 1e-3;
  };
  std::this_thread::sleep_for(std::chrono::milliseconds{20});
  const double before = used();
  std::this_thread::sleep_for(std::chrono::seconds{1});
  state.report("idle cpu us", used() - before);
}

}  // namespace bench

// idle: a pool that has had nothing to do for two milliseconds gets a job from outside. One item is from the post until the
// job runs. Reported besides: the slow ones, and what the pool burns in a second without a job. --size is the number of
// threads, and 1000 more for each second of that, where it is not one.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <ctime>
#include <string>
#include <thread>

#include "../harness/latencies.hpp"

namespace bench {

constexpr std::size_t threads_of(std::size_t size) { return size % 1000; }
constexpr std::size_t idle_seconds_of(std::size_t size) { return std::max<std::size_t>(size / 1000, 1); }

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
  const std::size_t seconds = idle_seconds_of(state.size());
  std::this_thread::sleep_for(std::chrono::seconds{seconds});
  state.report("cpu us in " + std::to_string(seconds) + " s idle", used() - before);
}

}  // namespace bench

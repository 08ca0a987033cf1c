// How long single events took: their median is the round's figure, and the slow ones are what a mean hides.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <vector>

#include "harness.hpp"

namespace bench {

class latencies {
 public:
  /// Hands `post` a flag for a job to set, and waits for that without sleeping, so that no wake-up but the job's counts.
  template <class Post>
  std::size_t time(Post&& post) {
    return time(post, state::clock::duration::max(), [] {});
  }

  /// The same; calls `give_up` once after `limit`, and then waits on: that is to have the job run after all.
  template <class Post, class GiveUp>
  std::size_t time(Post&& post, state::clock::duration limit, GiveUp&& give_up) {
    std::atomic<bool> ran{false};
    bool late = false;
    const auto begin = state::clock::now();
    post(ran);
    for (std::size_t looks = 1; !ran.load(std::memory_order_acquire); ++looks) {
      pause();
      if (looks % 1024 != 0 || late || state::clock::now() - begin <= limit) continue;
      late = true;
      give_up();
    }
    all_.push_back(std::chrono::duration<double, std::micro>{state::clock::now() - begin}.count());
    return 1;
  }

  /// One that was timed elsewhere.
  void add(state::clock::duration took) { all_.push_back(std::chrono::duration<double, std::micro>{took}.count()); }

  void report(state& to) {
    if (all_.empty()) return;
    to.report("p50 us", quantile(0.5));
    to.report("p99 us", quantile(0.99));
    to.report("p99.9 us", quantile(0.999));
  }

  /// Microseconds; of at least one.
  double quantile(double share) {
    std::ranges::sort(all_);
    return all_[static_cast<std::size_t>(share * static_cast<double>(all_.size() - 1))];
  }

 private:
  static void pause() noexcept {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }

  std::vector<double> all_;
};

}  // namespace bench

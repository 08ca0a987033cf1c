// post: two threads that are none of the pool's have it run empty jobs, 20,000 each, on --size threads. One item is a job,
// from its post until all have run.
#pragma once

#include <atomic>
#include <cstddef>
#include <thread>

namespace bench {

inline constexpr std::size_t post_producers = 2;
inline constexpr std::size_t posts_each = 20'000;
inline constexpr std::size_t posts = post_producers * posts_each;

/// What the jobs count down, and the caller waits for.
class posted {
 public:
  void ran() noexcept {
    if (count_.fetch_add(1, std::memory_order_acq_rel) + 1 == posts) count_.notify_one();
  }

  /// Each producer calls `post(*this)`, which is to bring about `at_a_time` of ran(), a divisor of posts_each.
  template <class Post>
  std::size_t by_producers(Post post, std::size_t at_a_time = 1) {
    const auto produce = [&] {
      for (std::size_t i = 0; i != posts_each; i += at_a_time) post(*this);
    };
    {
      const std::jthread one{produce}, other{produce};
    }
    for (std::size_t seen; (seen = count_.load(std::memory_order_acquire)) != posts;) count_.wait(seen);
    return posts;
  }

 private:
  std::atomic<std::size_t> count_{0};
};

}  // namespace bench

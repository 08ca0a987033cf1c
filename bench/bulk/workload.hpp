// bulk: 10,000 tasks are spawned, one after the other, and then joined, on a pool; each marks a byte of its own, and the result
// is how many did. --size is the pool's threads; 100 more, and they are spawned by one that runs on the pool, and not by a
// thread outside. One item is a task, from its making until all have ended.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <numeric>

namespace bench {

inline constexpr std::size_t bulk_tasks = 10'000;

inline constexpr std::size_t threads_of(std::size_t size) { return size % 100; }
inline constexpr bool is_from_inside(std::size_t size) { return size >= 100; }

/// What each task marks, by its number.
class marks {
 public:
  void set(std::size_t which) noexcept { set_[which] = 1; }
  /// After the join: how many were set. Then it may be used again.
  std::size_t take() noexcept {
    const std::size_t all = std::accumulate(set_.begin(), set_.end(), std::size_t{0});
    set_.fill(0);
    return all;
  }

 private:
  std::array<unsigned char, bulk_tasks> set_{};
};

/// Where a library has no join: what the tasks count up, and a thread outside waits for.
class counted {
 public:
  void ended() noexcept {
    if (count_.fetch_add(1, std::memory_order_acq_rel) + 1 == bulk_tasks) count_.notify_one();
  }
  /// Then it may be used again.
  std::size_t wait() noexcept {
    for (std::size_t seen; (seen = count_.load(std::memory_order_acquire)) != bulk_tasks;) count_.wait(seen);
    return count_.exchange(0, std::memory_order_relaxed);
  }

 private:
  std::atomic<std::size_t> count_{0};
};

}  // namespace bench

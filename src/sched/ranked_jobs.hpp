// Jobs in the order of their rank: first by level, then by deadline, then in the order of posts. Any thread puts jobs in,
// workers take the first, and at intervals the one that was posted first: so none waits for ever behind others that keep coming.
//
// It is one heap under a mutex, for all workers, so that they agree on which job is first. Only jobs with a rank go through
// it.
//
// Rejected: a heap for each worker: an urgent job would wait for the worker that it was posted on, and a thief would have to
// compare the heaps of all.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <mutex>
#include <new>
#include <tuple>
#include <vector>

namespace weft::detail {

template <class T>
class ranked_jobs {
 public:
  /// The deadline of a job that has none.
  static constexpr std::int64_t no_deadline = std::numeric_limits<std::int64_t>::max();

  /// False: there is no memory.
  bool put(T& one, unsigned level, std::int64_t deadline) noexcept {
    const std::lock_guard guard{lock_};
    try {
      heap_.push_back({level, deadline, numbers_, &one});
    } catch (const std::bad_alloc&) {
      return false;
    }
    ++numbers_;
    std::ranges::push_heap(heap_, comes_later, &entry::rank);
    size_.store(heap_.size(), std::memory_order_relaxed);  // as declared
    return true;
  }

  /// Takes the first job, or the oldest one if that is due; null if there is none.
  T* take() noexcept {
    if (empty()) return nullptr;
    const std::lock_guard guard{lock_};
    if (heap_.empty()) return nullptr;
    if (++in_order_ > std::max(most_in_order, heap_.size()))
        [[unlikely]] {  // so that the search costs little beside them
      in_order_ = 0;
      std::ranges::iter_swap(std::ranges::min_element(heap_, {}, &entry::number), std::prev(heap_.end()));
      std::ranges::make_heap(heap_.begin(), std::prev(heap_.end()), comes_later, &entry::rank);
    } else {
      std::ranges::pop_heap(heap_, comes_later, &entry::rank);
    }
    T* const first = heap_.back().one;
    heap_.pop_back();
    size_.store(heap_.size(), std::memory_order_relaxed);  // as declared
    return first;
  }

  /// A hint; behind a heavy_fence() it sees all that was put before a light_fence(), behind a full_fence() all before one.
  std::size_t size() const noexcept { return size_.load(std::memory_order_relaxed); }  // as declared
  bool empty() const noexcept { return size() == 0; }

 private:
  struct entry {
    unsigned level;
    std::int64_t deadline;
    std::uint64_t number;
    T* one;

    std::tuple<unsigned, std::int64_t, std::uint64_t> rank() const noexcept { return {level, deadline, number}; }
  };
  static constexpr std::ranges::greater comes_later{};  // std::ranges::push_heap() has the last in order on top

  static constexpr std::size_t most_in_order = 64;

  std::mutex lock_;  // guards what follows, but for reads of the hint
  std::vector<entry> heap_;
  std::size_t in_order_ = 0;  // how many were taken in the order of their rank since the oldest one was
  std::uint64_t numbers_ = 0;
  // Written under the lock. Relaxed: a hint, which the pairs of fences make true for who looks behind one.
  std::atomic<std::size_t> size_{0};
};

}  // namespace weft::detail

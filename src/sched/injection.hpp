// The injection queue of a pool: jobs that come from outside, or that did not fit into a worker's own line. Any thread puts
// jobs in, workers take several at a time, first in first out.
#pragma once

#include <atomic>
#include <cstddef>
#include <weft/detail/base/inbox.hpp>
#include <weft/detail/base/lock.hpp>

namespace weft::detail {

template <class T>
class injection {
 public:
  /// Any thread.
  void put(T& one) noexcept { incoming_.put(one); }
  /// The same with jobs that are linked, the newest first.
  void put(T& newest, T& oldest) noexcept { incoming_.put(newest, oldest); }

  /// By a worker: takes its share, if so many workers share the jobs, but no more than `most`. How many. 0 also where
  /// another worker takes some just now.
  std::size_t take(T** into, std::size_t most, std::size_t takers) noexcept {
    if (empty() || !lock_.try_lock()) return 0;
    std::size_t taken = 0;
    do {
      if (first_ == nullptr) bring_in();
      std::size_t share = length_ / takers + 1;
      if (share > most - taken) share = most - taken;
      T* one = first_;
      std::size_t of_these = 0;
      for (; one != nullptr && of_these != share; one = one->next) into[taken + of_these++] = one;
      first_ = one;
      length_ = length_ - of_these;
      taken += of_these;
    } while (takers == 1 && taken != most && !incoming_.empty());  // `first_` may have been a rest of the last time
    left_.store(first_ != nullptr, std::memory_order_relaxed);  // as declared
    lock_.unlock();
    return taken;
  }

  /// By the only worker of a pool: takes all jobs, linked, the oldest first.
  T* take_all() noexcept { return incoming_.empty() ? nullptr : incoming_.take(); }

  /// A hint; behind a heavy_fence() it sees all that was put before a light_fence(), behind a full_fence() all before one.
  bool empty() const noexcept { return incoming_.empty() && !left_.load(std::memory_order_relaxed); }  // as declared

 private:
  void bring_in() noexcept {
    first_ = incoming_.take();
    std::size_t length = 0;
    for (T* one = first_; one != nullptr; one = one->next) ++length;
    length_ = length;
  }

  inbox<T> incoming_;  // its edge: the job, and all before it was put  ->  the worker that takes it
  tiny_lock lock_;     // guards what follows, but for reads of the hint
  plain<T*> first_ = nullptr;
  plain<std::size_t> length_ = 0;
  // Whether there is something in `first_`. Written under the lock. Relaxed: a hint, which the pairs of fences make true
  // for who looks behind one.
  atomic<bool> left_{false};
};

}  // namespace weft::detail

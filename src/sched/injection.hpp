// Jobs that come to a pool from outside, or that did not fit into a worker's own line: any thread puts in, workers take
// some at a time, in order.
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

  /// By a worker: takes as many as there are for it if `takers` share them, but no more than `most`. How many. 0 also
  /// where another one is at it.
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
    } while (takers == 1 && taken != most && !incoming_.empty());  // what is left of the last time is not all
    left_.store(first_ != nullptr, std::memory_order_relaxed);  // as declared
    lock_.unlock();
    return taken;
  }

  /// By the only one that ever takes: all that there are, linked, the oldest first.
  T* take_all() noexcept { return incoming_.empty() ? nullptr : incoming_.take(); }

  /// A hint; the truth behind a heavy_fence(), for what was put before a light_fence().
  bool empty() const noexcept { return incoming_.empty() && !left_.load(std::memory_order_relaxed); }  // as declared

 private:
  void bring_in() noexcept {
    first_ = incoming_.take();
    std::size_t length = 0;
    for (T* one = first_; one != nullptr; one = one->next) ++length;
    length_ = length;
  }

  inbox<T> incoming_;  // its edge: the job, and all before it was put  ->  who takes it
  tiny_lock lock_;     // of what follows, but for the hint
  plain<T*> first_ = nullptr;
  plain<std::size_t> length_ = 0;
  // Whether there is something in `first_`. Written under the lock. Relaxed: a hint, which the pairs of fences make true
  // for who looks behind one.
  atomic<bool> left_{false};
};

}  // namespace weft::detail

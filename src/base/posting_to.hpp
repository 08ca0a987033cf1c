// How whoever destroys what threads post to waits for those that still do.
//
// Whoever posts from outside may still be in post() when the job that it posted has run, its waiter has gone on, and the
// pool is destroyed. So it says in a word of its own thread that it is in there; whoever destroys the pool waits for it.
// The job carries the edge from the one to the other.
//
// Rejected: a count of posts in flight, two read-modify-writes on one line for all posters.
#pragma once

#include <atomic>
#include <weft/detail/base/atomic.hpp>

#include "base/spin.hpp"

namespace weft::detail {

/// What a thread is posting to; null: nothing. Its own; others read it to wait for its end.
class posting_to {
 public:
  /// For as long as the thread posts to `it`, perhaps from within another post.
  class mark {
   public:
    mark(posting_to& mine, const void* it) noexcept
        : mine_{mine}, outer_{mine.it_.load(std::memory_order_relaxed)} {  // the thread's own
      mine.it_.store(it, std::memory_order_relaxed);                       // the job carries it
    }
    mark(const mark&) = delete;
    ~mark() {
      mine_.it_.store(outer_, std::memory_order_release);  // -> posted: what it posted to may be gone from here on
    }

   private:
    posting_to& mine_;
    const void* const outer_;
  };

  /// By who has seen that what was posted has run, and is about to destroy `it`.
  void wait_until_not(const void* it) const noexcept {
    spin_wait wait;
    while (it_.load(std::memory_order_acquire) == it) wait.once();  // <- posted
  }

 private:
  //   edge posted  all that it did with it  ->  who waits
  atomic<const void*> it_{nullptr};
};

}  // namespace weft::detail

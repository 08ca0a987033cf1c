// A hazard pointer for posts: each thread announces the object that it posts to, and whoever destroys that object waits until
// no thread announces it.
//
// A thread that posts from outside may still be in post() when the job that it posted has run, its waiter has gone on, and
// the pool is destroyed. The job carries the edge from the announcement to the destroyer.
//
// Source: hazard pointers (Michael, 2004). Rejected: a count of posts in flight, two read-modify-writes on one line for all
// posters.
#pragma once

#include <atomic>
#include <weft/detail/base/atomic.hpp>

#include "base/spin.hpp"

namespace weft::detail {

/// The object that a thread is posting to; null: none. The thread writes it, and destroyers read it.
class post_hazard {
 public:
  /// Announces `it` for as long as the thread posts to it, perhaps from within another post.
  class mark {
   public:
    mark(post_hazard& mine, const void* it) noexcept
        : mine_{mine}, outer_{mine.it_.load(std::memory_order_relaxed)} {  // the thread's own
      mine.it_.store(it, std::memory_order_relaxed);                       // the job carries it
    }
    mark(const mark&) = delete;
    ~mark() {
      mine_.it_.store(outer_, std::memory_order_release);  // -> posted: the object may be gone after this line
    }

   private:
    post_hazard& mine_;
    const void* const outer_;
  };

  /// Called by the destroyer of `it`, after all that was posted has run.
  void wait_until_not(const void* it) const noexcept {
    spin_wait wait;
    while (it_.load(std::memory_order_acquire) == it) wait.once();  // <- posted
  }

 private:
  //   edge posted  all that the thread did with the object  ->  its destroyer
  atomic<const void*> it_{nullptr};
};

}  // namespace weft::detail

#include <pthread.h>

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <utility>
#include <weft/clock.hpp>

#include "base/futex.hpp"
#include "base/helper_signals.hpp"
#include "base/thread_id.hpp"
#include "base/unloading.hpp"
#include "core/worker.hpp"

namespace weft {
namespace {

// The armed timers, by time: a pairing heap whose nodes are the timers. `child` is the first child of a node, `next` its next
// sibling, `prev` its previous sibling, or, of a first child, its parent.
//
// Source: Fredman, Sedgewick, Sleator, Tarjan, "The pairing heap", Algorithmica 1 (1986).
class timer_heap {
 public:
  timer* first() const noexcept { return first_; }

  void push(timer& one) noexcept {
    one.child = one.next = one.prev = nullptr;
    first_ = meld(first_, &one);
  }

  void remove(timer& one) noexcept {
    timer* below = meld_pairs(one.child);
    if (&one == first_) {
      first_ = below;
      return;
    }
    (one.prev->child == &one ? one.prev->child : one.prev->next) = one.next;
    if (one.next != nullptr) one.next->prev = one.prev;
    first_ = meld(first_, below);
  }

 private:
  // Merges two heaps, neither of which has siblings.
  static timer* meld(timer* a, timer* b) noexcept {
    if (a == nullptr || b == nullptr) return a != nullptr ? a : b;
    if (b->when < a->when) std::swap(a, b);
    b->next = a->child;
    if (b->next != nullptr) b->next->prev = b;
    b->prev = a;
    a->child = b;
    return a;
  }

  // Merges siblings into one heap: in pairs from the first, then the pairs from the last.
  static timer* meld_pairs(timer* sibling) noexcept {
    timer* pairs = nullptr;  // the last one first, linked by `prev`
    while (sibling != nullptr) {
      timer* one = sibling;
      timer* two = one->next;
      sibling = two != nullptr ? two->next : nullptr;
      one->next = one->prev = nullptr;
      if (two != nullptr) two->next = two->prev = nullptr;
      timer* pair = meld(one, two);
      pair->prev = pairs;
      pairs = pair;
    }
    timer* all = nullptr;
    while (pairs != nullptr) {
      timer* before = std::exchange(pairs->prev, nullptr);
      all = meld(all, pairs);
      pairs = before;
    }
    return all;
  }

  timer* first_ = nullptr;
};

// Never destroyed: timers may be armed and cancelled by the last destructors of the process.
class steady final : public clock {
 public:
  constexpr steady() = default;

  time_point now() const noexcept override { return std::chrono::steady_clock::now(); }

  void arm(timer& one, time_point when) noexcept override {
    bool earlier;
    {
      std::lock_guard guard{lock_};
      if (!running_) start();
      if (firing_ == &one) firing_ = nullptr;  // by its own function, or at the address of one that has ended
      one.when = when;
      one.armed = true;
      one.armed_by = who_arms();
      armed_.push(one);
      earlier = when < asleep_until_;
      if (earlier) changes_.fetch_add(1, std::memory_order_relaxed);  // the kernel orders it before the wake-up
    }
    if (earlier) detail::futex_wake(&changes_);
  }

  bool cancel(timer& one) noexcept override {
    std::unique_lock guard{lock_};
    while (!one.armed) {
      if (firing_ != &one || pthread_equal(thread_, pthread_self()) != 0) return false;
      const std::uint32_t seen = fired_.load(std::memory_order_relaxed);  // under the lock
      ++cancellers_;
      guard.unlock();
      detail::futex_wait(&fired_, seen);
      guard.lock();
      --cancellers_;
    }
    one.armed = false;
    armed_.remove(one);
    return true;
  }

 private:
  // A number that tells the calling thread from others that are alive; 0: a pool's worker, whose tasks no forked child has.
  static std::uint32_t who_arms() noexcept {
    return detail::this_worker().of_pool != nullptr ? 0 : static_cast<std::uint32_t>(detail::this_thread_id() >> 8);
  }

  // In the child of a fork(), which has only the calling thread: drops the timers of other threads. They may lie on a stack
  // that the child's next thread gets, and would only wake what is in the parent.
  void forget_those_of_others() noexcept {
    const std::uint32_t mine = who_arms();
    timer_heap kept;
    while (timer* const one = armed_.first()) {
      armed_.remove(*one);
      if (mine != 0 && one->armed_by == mine)
        kept.push(*one);
      else
        one->armed = false;
    }
    armed_ = kept;
  }

  // Under the lock, as all that follows.
  void start() noexcept {
    static const bool once = [] {
      static_cast<void>(detail::this_worker());  // so that its fork handlers run before these in the child
      // The lock is held over a fork(), so that the child gets it in a consistent state; the clock's thread is in the parent.
      pthread_atfork([] { instance().lock_.lock(); }, [] { instance().lock_.unlock(); },
                     [] {
                       instance().running_ = false;
                       instance().firing_ = nullptr;
                       instance().cancellers_ = 0;
                       instance().forget_those_of_others();
                       instance().lock_.unlock();
                     });
      return true;
    }();
    static_cast<void>(once);
    if (!ends_in_time_) ends_in_time_ = detail::at_end([] { instance().end(); });
    ending_ = false;
    asleep_until_ = time_point::min();
    const detail::helper_signals as_helper;
    const int refused = pthread_create(
        &thread_, nullptr,
        [](void*) -> void* {
          instance().run();
          return nullptr;
        },
        nullptr);
    WEFT_EXPECTS(refused == 0, "the clock needs a thread to wake who sleeps, and the system gave none");
    running_ = true;
  }

  void run() noexcept {
    std::unique_lock guard{lock_};
    time_point seen{};  // now, or a little earlier
    while (!ending_) {
      timer* one = armed_.first();
      if (one != nullptr && (one->when <= seen || one->when <= (seen = now()))) {
        armed_.remove(*one);
        one->armed = false;
        firing_ = one;
        guard.unlock();
        one->fire(*one);  // may be gone after this line
        guard.lock();
        firing_ = nullptr;
        fired_.fetch_add(1, std::memory_order_relaxed);  // read under the lock, and by the kernel
        if (cancellers_ != 0) detail::futex_wake(&fired_);
        continue;
      }
      const std::uint32_t changes = changes_.load(std::memory_order_relaxed);  // under the lock
      const bool for_ever = one == nullptr || one->when == time_point::max();
      const time_point until = for_ever ? time_point{} : one->when;
      asleep_until_ = for_ever ? time_point::max() : until;
      guard.unlock();
      if (for_ever)
        detail::futex_wait(&changes_, changes);
      else
        detail::futex_wait_until(&changes_, changes, until);
      guard.lock();
      asleep_until_ = time_point::min();
    }
  }

  // Called at the end of the process, or when the library is unloaded.
  void end() noexcept {
    {
      std::lock_guard guard{lock_};
      if (detail::is_unloading()) ends_in_time_ = false;  // the destructor of a static may start the thread again
      if (!running_ || pthread_equal(thread_, pthread_self()) != 0) return;
      ending_ = true;
      changes_.fetch_add(1, std::memory_order_relaxed);  // as in arm()
    }
    detail::futex_wake(&changes_);
    pthread_join(thread_, nullptr);  // other threads may arm timers meanwhile, but start no thread
    std::lock_guard guard{lock_};
    running_ = false;
  }

  static steady& instance() noexcept;

  std::mutex lock_;  // of all that follows
  timer_heap armed_;
  timer* firing_ = nullptr;                      // whose function runs; compared only: it may be gone
  unsigned cancellers_ = 0;                      // how many wait for that
  time_point asleep_until_ = time_point::min();  // of the thread; min(): it is awake, and will look at the timers
  bool running_ = false;                         // the thread is there
  bool ending_ = false;
  bool ends_in_time_ = false;  // end() will be called, or was, at the end of the process
  pthread_t thread_{};

  // Futexes: what the clock's thread sleeps on, and what threads sleep on that wait for a function to return. All else is
  // under the lock.
  std::atomic<std::uint32_t> changes_{0};
  std::atomic<std::uint32_t> fired_{0};
};

constinit steady real;
steady& steady::instance() noexcept { return real; }

}  // namespace

clock& real_clock() noexcept { return real; }

clock& current_clock() noexcept {
  const env& mine = current_env();
  return mine.clock != nullptr ? *mine.clock : real;
}

namespace detail {

bool sleep_awaiter::suspend(root& self) noexcept {
  if (self.sleeper::stop_requested()) return (end_stopped(self), true);
  clock_ = &clock_of(self);
  const clock::time_point now = clock_->now();
  const clock::time_point when = relative_ ? later(now, for_) : until_;
  if (when <= now) return false;
  clock_->arm(*this, when);
  if (!self.park(*this)) {
    clock_->cancel(*this);
    return (end_stopped(self), true);
  }
  switch (fired_.enter(*this)) {
    case handover::entry::waits: break;  // self may be gone since then
    case handover::entry::ready: finish(); break;
    case handover::entry::left:
      clock_->cancel(*this);
      finish(wake_up::stopped);
      break;
  }
  return true;
}

void sleep_awaiter::fire_now(timer& self) noexcept {
  if (waiter* one = static_cast<sleep_awaiter&>(self).fired_.complete(); one != nullptr) one->finish();
}

// If the timer fires meanwhile, the wait has ended, and it wakes nobody.
on_stop sleep_awaiter::leave(waiter& self) noexcept {
  auto& mine = static_cast<sleep_awaiter&>(self);
  if (!mine.fired_.leave(mine)) return on_stop::forwarded;
  mine.clock_->cancel(mine);
  return on_stop::left;
}

}  // namespace detail
}  // namespace weft

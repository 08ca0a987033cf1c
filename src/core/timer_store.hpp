// The armed timers of the real clock, and who may take one out.
//
// A wheel a worker of a pool, and a common part that plain threads use: a wheel, and a heap with what is due within the next
// two ticks, by its exact time. Each wheel is under a lock of its own, which is biased towards its worker; the common part is
// under the common lock. `home` of a timer says which of these it is in.
//
//   arm     by a worker: into its own wheel, under that lock. What is due too soon for a wheel goes into the common heap
//   bring   by the clock: advances a wheel, and puts what is due within two ticks into the heap, under both locks
//   fire    by the clock: takes the first one out of the heap, and calls its function under no lock
//   end     the clock's thread ends with the process, or with the library. From then on no wheel has a first tick, so that
//           whoever arms next tells the clock, and thereby starts a thread again; that first looks where all wheels have theirs
//   cancel  reads `home`, takes the lock of that, and looks again: bring() may have changed it, or the timer's own function,
//           which has armed it anew. Of one that is in none, the common lock tells whether its function runs
//
// A wheel keeps the first tick at which the clock has to look at it. Who arms a timer of an earlier slot lowers that, and tells
// the clock. Nobody raises it but the clock, when it looks: so most timers, armed and cancelled long before their time, cost
// the clock nothing.
//
// A wheel belongs to a core/worker.hpp, which never ends: when its thread or its pool does, the clock goes on to look at it.
// So what a worker has armed fires also where that worker computes, sleeps, or has ended.
//
// Rejected: wheels that their workers look at themselves: a worker that computes fires nothing, so others need the locks all the
// same; and a worker that sleeps on a futex, an epoll set or a ring has to be told when another thread cancels or arms.
//
// Locks: a wheel's, then the common one. Never two wheels'.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <weft/detail/base/atomic.hpp>
#include <weft/detail/base/config.hpp>
#include <weft/detail/base/lock.hpp>
#include <weft/timer.hpp>

#include "base/futex.hpp"
#include "base/rebiasing_lock.hpp"
#include "base/thread_id.hpp"
#include "core/timer_heap.hpp"
#include "core/timer_wheel.hpp"

namespace weft::detail {

/// Those that one worker has armed.
struct worker_wheel {
  explicit worker_wheel(std::uint32_t most_in_a_row = 64) noexcept : lock{most_in_a_row} {}

  rebiasing_lock lock;
  timer_wheel wheel;
  // Written under the lock. Relaxed: who has lowered it takes the common lock, under which the clock reads it.
  atomic<timer_wheel::tick> first{timer_wheel::never};
  std::uint16_t home = 0;  // what its timers have; written once, before there are any
};

class timer_store {
 public:
  using tick = timer_wheel::tick;
  using time_point = timer::time_point;

  static constexpr std::uint16_t most_wheels = 1024;
  /// So many ticks before a slot begins, the clock looks at it: then it sleeps until what is in there is due.
  static constexpr tick ahead = 2;

  timer_store() = default;
  timer_store(const timer_store&) = delete;

  /// The common lock.
  tiny_lock& lock() noexcept { return lock_; }

  // ---- whoever arms and cancels

  /// With the common lock: enters a wheel. False: there are too many.
  bool enter(worker_wheel& one) noexcept {
    if (count_ == most_wheels) return false;
    one.home = static_cast<std::uint16_t>(first_of_workers + count_);
    wheels_[count_++] = &one;
    return true;
  }

  /// Arms a timer in the worker's own wheel. Where that cannot have it, returns `here`: to be armed in the common part.
  enum class armed : std::uint8_t { later, first, here };
  armed arm(worker_wheel& mine, timer& one, time_point when) noexcept {
    if (firing_.load(std::memory_order_relaxed) == &one) [[unlikely]]  // as declared
      forget_firing(one);
    expect_not_armed(one);
    mine.lock.enter();
    if (timer_wheel::tick_of(when) <= mine.wheel.position()) {
      mine.lock.leave();
      return armed::here;
    }
    one.when = when;
    one.armed_by = 0;
    one.home.store(mine.home, std::memory_order_relaxed);  // as declared
    const tick begin = mine.wheel.add(one);
    const bool is_first = begin < mine.first.load(std::memory_order_relaxed);  // as declared
    if (is_first) [[unlikely]]
      mine.first.store(begin, std::memory_order_relaxed);  // as declared
    mine.lock.leave();
    return is_first ? armed::first : armed::later;
  }

  /// With the common lock. Returns when the clock has to look at it.
  time_point arm(timer& one, time_point when, std::uint32_t by) noexcept {
    expect_not_armed(one);
    // By its own function, or at the address of one that has ended.
    if (firing_.load(std::memory_order_relaxed) == &one)  // under the lock
      firing_.store(nullptr, std::memory_order_relaxed);  // as declared
    one.when = when;
    one.armed_by = by;
    if (timer_wheel::tick_of(when) <= wheel_.position()) {
      one.home.store(in_heap, std::memory_order_relaxed);  // as declared
      heap_.push(one);
      return when;
    }
    one.home.store(in_common_wheel, std::memory_order_relaxed);  // as declared
    const tick begin = wheel_.add(one);
    if (begin < first_) first_ = begin;
    return look_at(begin);
  }

  /// When the clock has to look at a wheel whose first slot begins at that tick.
  static time_point look_at(tick begin) noexcept {
    return begin != timer_wheel::never ? timer_wheel::begin_of(begin - std::min(begin, ahead)) : time_point::max();
  }

  /// `mine` is the wheel of the worker that calls; null: it has none.
  bool cancel(worker_wheel* mine, timer& one) noexcept {
    for (;;) {
      const std::uint16_t home = one.home.load(std::memory_order_relaxed);  // asked again under the lock
      if (home < first_of_workers) {
        if (const auto done = cancel_in_common(one); done != cancelled::look_again) return done == cancelled::yes;
      } else if (mine != nullptr && mine->home == home) {
        mine->lock.enter();
        const cancelled done = cancel_in(*mine, one);
        mine->lock.leave();
        if (done != cancelled::look_again) return done == cancelled::yes;
      } else {
        worker_wheel& other = *wheels_[home - first_of_workers];
        other.lock.lock();
        const cancelled done = cancel_in(other, one);
        other.lock.unlock();
        if (done != cancelled::look_again) return done == cancelled::yes;
      }
    }
  }

  // ---- the clock, with the common lock

  /// Whether it has a thread, or waits for the end of one: nobody else starts one then.
  bool is_running() const noexcept { return running_; }
  void transition_to_running() noexcept { running_ = true; }

  /// Takes out a timer that is due at `now`: it is firing until has_fired(). Null: there is none in the heap.
  timer* take_due(time_point now) noexcept {
    timer* const one = heap_.first();
    if (one == nullptr || one->when > now) return nullptr;
    heap_.remove(*one);
    one->home.store(in_none, std::memory_order_relaxed);  // as declared
    firer_ = this_thread_id();
    firing_.store(one, std::memory_order_relaxed);  // as declared
    return one;
  }
  void has_fired() noexcept {
    firing_.store(nullptr, std::memory_order_relaxed);  // as declared
    fired_.fetch_add(1, std::memory_order_relaxed);     // read under the lock, and by the kernel
    if (cancellers_ != 0) word_futex{fired_}.wake();
  }

  /// A wheel that there is something to bring from, up to a tick; null: there is none.
  worker_wheel* wheel_with(tick to) noexcept {
    for (unsigned i = 0; i != count_; ++i)
      if (wheels_[i]->first.load(std::memory_order_relaxed) <= to) return wheels_[i];  // as declared
    return nullptr;
  }
  bool common_wheel_with(tick to) const noexcept { return first_ <= to; }
  /// Brings some from the common wheel.
  void bring(tick to) noexcept {
    wheel_.advance(to, at_once, [this](timer& one) { bring(one); });
    first_ = wheel_.first();
  }

  /// When there is something to do next; time_point::max(): never.
  time_point next() const noexcept {
    tick first = first_;
    for (unsigned i = 0; i != count_; ++i)
      if (const tick its = wheels_[i]->first.load(std::memory_order_relaxed); its < first) first = its;  // as declared
    return heap_.first() != nullptr ? std::min(heap_.first()->when, look_at(first)) : look_at(first);
  }

  // ---- the clock, without a lock

  /// Brings some from a worker's wheel.
  void bring(worker_wheel& from, tick to) noexcept {
    const std::lock_guard guard{from.lock};
    {
      const std::lock_guard common{lock_};
      from.wheel.advance(to, at_once, [this](timer& one) { bring(one); });
    }
    from.first.store(from.wheel.first(), std::memory_order_relaxed);  // as declared
  }

  /// When its thread begins: finds where each wheel has its first timer, which transition_to_ended() has forgotten. A
  /// worker that arms before that says so, as its wheel seems empty.
  void find_first_of_all() noexcept {
    const unsigned all = [&] {
      const std::lock_guard common{lock_};
      return count_;
    }();
    for (unsigned i = 0; i != all; ++i) {
      const std::lock_guard guard{wheels_[i]->lock};
      wheels_[i]->first.store(wheels_[i]->wheel.first(), std::memory_order_relaxed);  // as declared
    }
  }

  /// When its thread has ended: forgets where each wheel has its first timer. A worker whose wheel has one that is early
  /// would tell nobody of what it arms for later, and that would wait for ever.
  void transition_to_ended() noexcept {
    const unsigned all = [&] {
      const std::lock_guard common{lock_};
      running_ = false;
      return count_;  // who enters one more starts a thread
    }();
    for (unsigned i = 0; i != all; ++i) {
      const std::lock_guard guard{wheels_[i]->lock};
      const std::lock_guard common{lock_};
      if (running_) return;  // that thread has looked for them, or will
      wheels_[i]->first.store(timer_wheel::never, std::memory_order_relaxed);  // as declared
    }
  }

  // ---- fork()

  /// Takes all locks, so that the child gets what they guard in a consistent state.
  void before_fork() noexcept {
    unsigned locked = 0;
    for (lock_.lock(); locked != count_; lock_.lock()) {
      const unsigned all = count_;
      lock_.unlock();
      for (; locked != all; ++locked) wheels_[locked]->lock.lock();
    }
  }
  void after_fork() noexcept {
    for (unsigned i = 0; i != count_; ++i) wheels_[i]->lock.unlock();
    lock_.unlock();
  }
  /// In the child, which has only the calling thread: drops the timers of other threads. They may lie on a stack that the
  /// child's next thread gets, and would only wake what is in the parent. `mine` tells that thread; 0: a pool's worker, whose
  /// tasks no child has.
  void forget_those_of_others(std::uint32_t mine) noexcept {
    running_ = false;
    firing_.store(nullptr, std::memory_order_relaxed);  // as declared
    cancellers_ = 0;
    timer* kept = nullptr;
    const auto look = [&](timer& one) {
      one.home.store(in_none, std::memory_order_relaxed);  // as declared
      if (mine == 0 || one.armed_by != mine) return;
      one.next = kept;
      kept = &one;
    };
    for (unsigned i = 0; i != count_; ++i) {
      wheels_[i]->lock.owner_is_gone();
      wheels_[i]->wheel.clear(look);
      wheels_[i]->first.store(timer_wheel::never, std::memory_order_relaxed);  // as declared
    }
    wheel_.clear(look);
    first_ = timer_wheel::never;
    while (timer* const one = heap_.first()) {
      heap_.remove(*one);
      look(*one);
    }
    while (kept != nullptr) {
      timer& one = *kept;
      kept = one.next;
      arm(one, one.when, mine);
    }
  }

 private:
  // Homes. `in_none`: it is not armed.
  static constexpr std::uint16_t in_none = 0, in_heap = 1, in_common_wheel = 2, first_of_workers = 3;
  static constexpr unsigned at_once = 64;  // the clock looks at so many timers with a lock

  enum class cancelled : std::uint8_t { yes, no, look_again };

  static void expect_not_armed(const timer& one) noexcept {
    WEFT_EXPECTS(one.home.load(std::memory_order_relaxed) == in_none,  // by its owner, who arms it
                 "a timer was armed that is armed already: cancel it first");
  }

  // With the lock of the wheel.
  static cancelled cancel_in(worker_wheel& its, timer& one) noexcept {
    if (one.home.load(std::memory_order_relaxed) != its.home) return cancelled::look_again;  // under the lock
    one.home.store(in_none, std::memory_order_relaxed);                                      // as declared
    its.wheel.remove(one);
    return cancelled::yes;
  }

  cancelled cancel_in_common(timer& one) noexcept {
    std::unique_lock guard{lock_};
    for (;;) {
      const std::uint16_t home = one.home.load(std::memory_order_relaxed);  // under the lock
      if (home >= first_of_workers) return cancelled::look_again;
      if (home != in_none) {
        one.home.store(in_none, std::memory_order_relaxed);  // as declared
        if (home == in_heap)
          heap_.remove(one);
        else
          wheel_.remove(one);
        return cancelled::yes;
      }
      if (firing_.load(std::memory_order_relaxed) != &one || firer_ == this_thread_id())  // under the lock
        return cancelled::no;
      const std::uint32_t seen = fired_.load(std::memory_order_relaxed);  // under the lock
      ++cancellers_;
      guard.unlock();
      word_futex{fired_}.wait(seen, time_point::max());
      guard.lock();
      --cancellers_;
    }
  }

  // With the lock of the wheel that it was in, and the common one.
  void bring(timer& one) noexcept {
    one.home.store(in_heap, std::memory_order_relaxed);  // as declared
    heap_.push(one);
  }

  WEFT_SELDOM void forget_firing(const timer& one) noexcept {
    const std::lock_guard guard{lock_};
    if (firing_.load(std::memory_order_relaxed) == &one)  // under the lock
      firing_.store(nullptr, std::memory_order_relaxed);  // as declared
  }

  tiny_lock lock_;  // of all that follows, but for the wheels of workers
  timer_wheel wheel_;
  plain<tick> first_ = timer_wheel::never;  // as that of a worker's wheel
  timer_heap heap_;
  plain<bool> running_ = false;      // the clock has a thread
  plain<std::uintptr_t> firer_ = 0;  // the thread whose function runs
  plain<unsigned> cancellers_ = 0;   // how many wait for that
  // Whose function runs; compared only: it may be gone. Written under the lock. Read without it, relaxed, by who arms a timer:
  // that finds the timer here only if its own function, or one that was at its address and has ended by then, still runs.
  atomic<timer*> firing_{nullptr};
  atomic<std::uint32_t> fired_{0};  // a futex, for threads that wait for a function to return; written under the lock
  unsigned count_ = 0;
  worker_wheel* wheels_[most_wheels]{};  // each is written once, before any timer leads there
};

}  // namespace weft::detail

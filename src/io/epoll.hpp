// Readiness by epoll: one set for all workers of a runtime.
//
// A descriptor enters the set once, edge-triggered in both directions, and leaves it when it is closed: so a wait costs no
// epoll_ctl(). One thread at a time waits in the set: of a runtime's idle workers one sleeps there and the others on their futex.
// When that worker gets something to run, no worker sleeps in the set until one looks for work again. Meanwhile, in a pool of
// several, the guard (io_guard) wakes an idle worker every 5 ms to look, and a busy worker polls the set every 61 jobs, or every
// 5 ms.
//
// The worker asleep in the set is woken through an eventfd in the set. It is edge-triggered, too, so that nobody has to read it.
//
// Rejected: a set for each worker. While a worker computes, its sockets would wait for it, and a connection that one worker has
// accepted and another serves would have to move between the sets.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "io/io_guard.hpp"
#include "io/io_service.hpp"
#include "sched/parker.hpp"
#include "sched/sleep_word.hpp"

namespace weft::detail {

class epoll final : public io_service {
 public:
  using time_point = parker::time_point;

  /// Throws error.
  epoll();
  ~epoll();

  /// What the system has reported in one wait.
  class changes {
   public:
    bool empty() const noexcept { return count_ == 0; }
    /// Wakes the waiting tasks. One without an executor runs inside this call.
    void report() noexcept;

   private:
    friend class epoll;
    struct change {  // what epoll_event is, without <sys/epoll.h>
      descriptor* of;
      std::uint16_t generation;
      std::uint32_t events;
    };
    static constexpr int most = 128;
    int count_ = 0;
    change list_[most];
  };

  /// Waits for changes until then, unless another thread waits in the set. Without limit for time_point::max(); a time that has
  /// passed only polls. Does not wait either if `goes`, called last, gives false. Returns false if another thread waits.
  template <class Going>
  bool wait(time_point until, changes& into, Going goes) noexcept {
    if (waited_in_.load(std::memory_order_relaxed) ||          // a guess: the exchange decides
        waited_in_.exchange(true, std::memory_order_acquire))  // <- turn (no model: a try-lock)
      return false;
    if (goes()) wait_alone(until, into);
    waited_in_.store(false, std::memory_order_release);  // -> turn (no model: a try-lock)
    return true;
  }

  /// Whether a thread waits in it. A hint.
  bool is_waited_in() const noexcept { return waited_in_.load(std::memory_order_relaxed); }  // a hint, no edge

  /// Ends the wait() that is under way, or the next one.
  void interrupt() noexcept;
  void stop_watching(int number) noexcept override;
  void arm(descriptor&, direction) noexcept override {}  // both directions are armed from the beginning on

  struct counts {
    std::uint64_t waits, changes, interrupts;
  };
  counts so_far() const noexcept;
  /// The number of the set itself, for which another event loop may wait.
  int number() const noexcept { return set_; }

 private:
  int begin_to_watch(descriptor& one) noexcept override;
  void wait_alone(time_point until, changes& into) noexcept;

  const int set_;
  const int wake_fd_;  // the eventfd of interrupt()
  //   edge turn  the figures that a waiting thread has counted  ->  the thread that waits next
  std::atomic<bool> waited_in_{false};
  std::atomic<std::uint64_t> waits_{0}, changes_{0}, interrupts_{0};  // figures, no edge
};

/// Has a worker that sleeps on its futex woken if no thread has waited in the set for 5 to 10 ms. Who has just left it may be about to
/// come back, and whoever falls asleep next waits there.
class epoll_guard final : public io_guard {
 public:
  explicit epoll_guard(const epoll& set) noexcept : set_{&set} {}

 private:
  bool needs_one(bool left_lately) noexcept override { return !left_lately && !set_->is_waited_in(); }

  const epoll* set_;
};

/// How a worker of a runtime sleeps: in the set, or on its futex if another worker sleeps in the set.
class epoll_parker final : public parker {
 public:
  epoll_parker(epoll& set, epoll_guard& guard) noexcept : set_{&set}, guard_{&guard} {}

  void prepare() noexcept override {
    was_idle_ = true;
    word_.prepare();
  }
  void commit(time_point until) noexcept override;
  void wake() noexcept override;
  bool poll(bool between_jobs) noexcept override;

 private:
  sleep_word word_;
  epoll* set_;
  epoll_guard* guard_;
  epoll::changes changes_;
  bool was_idle_ =
      false;  // it has entered the set of idle workers since it last called has_left(), if only to leave it at once
};

}  // namespace weft::detail

// How a worker sleeps. A pool without I/O sleeps on a futex; where a worker looks after a ring or an epoll set, it sleeps
// there, and whoever wakes it reaches it there.
//
//   worker  prepare(); enters the set of idle workers; looks once more whether there is something to do; commit()
//   waker   takes a worker out of the set; wake()
//
// A wake() after prepare() is not lost: commit() returns at once. One that comes later than its worker needs it makes a
// later commit() return for no reason, which every caller allows for.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <weft/detail/base/atomic.hpp>

#include "base/futex.hpp"

namespace weft::detail {

class parker {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  parker() = default;
  parker(const parker&) = delete;
  virtual ~parker() = default;

  /// By its worker.
  virtual void prepare() noexcept = 0;
  /// By its worker: sleeps until it is woken, or until then; may return at any time.
  virtual void commit(time_point until) noexcept = 0;
  /// Any thread.
  virtual void wake() noexcept = 0;
  /// By its worker, every now and then between jobs, each time that it looks for one, and before it sleeps: sees to what
  /// has happened, and does not wait. It may post, and resumes nothing. True: it has posted to the pool or to this worker.
  virtual bool poll() noexcept { return false; }
};

class futex_parker final : public parker {
 public:
  void prepare() noexcept override { word_.store(awake, std::memory_order_relaxed); }  // as declared

  void commit(time_point until) noexcept override {
    std::uint32_t seen = awake;
    if (word_.compare_exchange_strong(seen, asleep, std::memory_order_relaxed,  // as declared
                                      std::memory_order_relaxed))               // as declared
      word_futex{word_}.wait(asleep, until);
  }

  void wake() noexcept override {
    const word_futex sleeps_on{word_};
    if (word_.exchange(woken, std::memory_order_relaxed) == asleep) sleeps_on.wake();  // as declared
  }

 private:
  static constexpr std::uint32_t awake = 0, asleep = 1, woken = 2;
  // Relaxed: it says whether to sleep, and carries nothing. What the waker did, the idle set carries to the worker.
  atomic<std::uint32_t> word_{awake};
};

}  // namespace weft::detail

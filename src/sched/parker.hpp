// How a worker sleeps: on a futex, or, where it serves an io_uring or an epoll set, in a wait for that, which a waker then
// ends.
//
//   worker  prepare(); enters the set of idle workers; looks once more whether there is something to do; commit()
//   waker   takes a worker out of the set; wake()
//
// A wake() after prepare() is not lost: commit() returns at once. A wake() that comes late may make
// a later commit() return without a reason, which every caller allows for.
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
  /// By its worker: sleeps until it is woken, or until that time; may return at any time.
  virtual void commit(time_point until) noexcept = 0;
  /// Any thread.
  virtual void wake() noexcept = 0;
  /// By its worker, each time that it looks for a job, so at once after a sleep, and every now and then between jobs: handles
  /// events without waiting for any. True: it may have posted to the pool or to this worker.
  virtual bool poll([[maybe_unused]] bool between_jobs) noexcept { return false; }
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

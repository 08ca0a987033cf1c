// The workers that there are, for who watches them; and how a watcher sleeps while all of them do.
//
//   worker   enlists as its thread begins, and leaves the list before it ends; rings the bell when it has woken up
//   watcher  looks at all in the list, under its lock; if all sleep, says that it sleeps, too, looks once more, and sleeps
//
// The two words are each written by one side and then the other's read, with a fence in between: either the watcher sees that
// the worker is awake, or the worker that the watcher sleeps.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "base/count.hpp"
#include "base/fence.hpp"
#include "base/futex.hpp"

namespace weft::detail {

struct pool_worker;
struct worker;

class watched_worker {
 public:
  /// By the worker's thread, which has the others' fields until it leaves.
  watched_worker(const pool_worker& jobs, const time_asleep& asleep, const worker& here, unsigned index,
                 std::size_t (*ready)(const pool_worker&) noexcept) noexcept;
  watched_worker(const watched_worker&) = delete;
  ~watched_worker();

  const pool_worker& jobs;
  const time_asleep& asleep;
  const worker& here;
  const unsigned index;                                     ///< in its pool
  const int thread;                                         ///< the kernel's number
  std::size_t (*const ready)(const pool_worker&) noexcept;  ///< how many jobs wait for it

  // The watcher's own.
  std::uint64_t number = 0;      // of the job that it was at, at the last look
  std::uint64_t since = 0;       // since when it is at that
  std::uint64_t ran_before = 0;  // how long the thread had run by then, and had waited for a processor; in nanoseconds
  std::uint64_t queued_before = 0;
  bool is_known = false;  // the last three are of this job
  bool is_blamed = false;

 private:
  friend class watched_workers;
  watched_worker *next_ = nullptr, *before_ = nullptr;
};

/// All of them, while this lives: none begins or ends meanwhile.
class watched_workers {
 public:
  watched_workers() noexcept;
  /// In a child of fork(), under the lock.
  static void forget_all() noexcept;
  template <class F>
  void for_each(F f) const {
    for (watched_worker* one = first; one != nullptr; one = one->next_) f(*one);
  }

 private:
  friend watched_worker;
  static constinit watched_worker* first;
  std::unique_lock<std::mutex> guard_;
};

/// Where a watcher sleeps while all workers do. One watcher at a time.
class watcher_bed {
 public:
  /// By a worker that has woken up, or has begun.
  static void ring_if_asleep() noexcept {
    light_fence();  // between `asleep` of this worker and the word (no model: the same as of parking)
    if (word.load(std::memory_order_relaxed) != 0) [[unlikely]]  // the fence orders it
      ring();
  }
  /// Ends a sleep, or the next one. Any thread.
  static void ring() noexcept;

  /// By the watcher: is about to sleep. It then looks at all workers once more, and calls sleep() or stay_awake().
  static void prepare() noexcept;
  static void stay_awake() noexcept;
  static void sleep() noexcept;

 private:
  // 1: the watcher sleeps, or is about to. Relaxed: the fences order it.
  static constinit std::atomic<std::uint32_t> word;
};

}  // namespace weft::detail

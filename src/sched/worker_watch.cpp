#include "sched/worker_watch.hpp"

#include <pthread.h>
#include <unistd.h>

namespace weft::detail {
namespace {

constinit std::mutex list_lock;

// A forked child gets the list unlocked, and with none of its parent's threads.
bool keep_lock_over_forks() noexcept {
  return ::pthread_atfork([] { list_lock.lock(); }, [] { list_lock.unlock(); },
                          [] {
                            watched_workers::forget_all();
                            list_lock.unlock();
                          }) == 0;
}

}  // namespace

constinit watched_worker* watched_workers::first = nullptr;
constinit std::atomic<std::uint32_t> watcher_bed::word{0};

watched_worker::watched_worker(const pool_worker& its_jobs, const time_asleep& its_sleep, const worker& its_thread,
                               unsigned its_index, std::size_t (*its_ready)(const pool_worker&) noexcept) noexcept
    : jobs{its_jobs}, asleep{its_sleep}, here{its_thread}, index{its_index}, thread{::gettid()}, ready{its_ready} {
  [[maybe_unused]] static const bool keeps = keep_lock_over_forks();
  {
    const std::lock_guard guard{list_lock};
    next_ = watched_workers::first;
    if (next_ != nullptr) next_->before_ = this;
    watched_workers::first = this;
  }
  watcher_bed::ring_if_asleep();
}

watched_worker::~watched_worker() {
  const std::lock_guard guard{list_lock};
  (before_ != nullptr ? before_->next_ : watched_workers::first) = next_;
  if (next_ != nullptr) next_->before_ = before_;
}

void watched_workers::forget_all() noexcept { first = nullptr; }

watched_workers::watched_workers() noexcept : guard_{list_lock} {}

void watcher_bed::ring() noexcept {
  if (word.exchange(0, std::memory_order_relaxed) != 0)  // as declared
    word_futex{word}.wake();
}

void watcher_bed::prepare() noexcept {
  word.store(1, std::memory_order_relaxed);  // as declared
  heavy_fence();  // between the word and `asleep` of each worker (no model: the same as of parking)
}

void watcher_bed::stay_awake() noexcept { word.store(0, std::memory_order_relaxed); }  // as declared

void watcher_bed::sleep() noexcept {
  while (word.load(std::memory_order_relaxed) != 0)
    word_futex{word}.wait(1, std::chrono::steady_clock::time_point::max());  // as declared
}

}  // namespace weft::detail

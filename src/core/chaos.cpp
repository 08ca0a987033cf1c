#include "core/chaos.hpp"

#include <pthread.h>
#include <sched.h>
#include <time.h>
#include <weft/detail/core/root.hpp>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "base/futex.hpp"
#include "base/helper_signals.hpp"
#include "base/thread_id.hpp"

namespace weft::detail {
namespace {

using when = std::chrono::steady_clock::time_point;

// ---- dice: a sequence for each thread, begun by the seed and the thread's number --------------------------------------------

constinit std::atomic<std::uint64_t> seed{0};     // relaxed: written before the watch begins, whose edge carries it
constinit std::atomic<std::uint64_t> threads{0};  // relaxed: it only hands out numbers

// Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014 (splitmix64).
unsigned roll(unsigned sides) noexcept {
  [[gnu::tls_model("initial-exec")]] static constinit thread_local std::uint64_t state = 0;
  if (state == 0)
    state = seed.load(std::memory_order_relaxed) * 0xd1342543de82ef95U +
            (threads.fetch_add(1, std::memory_order_relaxed) << 1) + 1;
  std::uint64_t z = state += 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return static_cast<unsigned>((z ^ (z >> 31)) % sides);
}

// Mostly does nothing; sometimes yields the processor, seldom sleeps for a moment.
void give_way() noexcept {
  const unsigned side = roll(32);
  if (side < 8) ::sched_yield();
  if (side == 8) {
    const timespec moment{0, static_cast<long>(1'000 * roll(50))};
    ::nanosleep(&moment, nullptr);
  }
}

// ---- late wake-ups ------------------------------------------------------------------------------------------------------

// Claimed sleepers that a thread of chaos wakes later, each at its time. Where there is no room, a sleeper is woken at once.
class late_wake_ups {
 public:
  constexpr late_wake_ups() = default;

  bool take(sleeper& one, wake_up how) noexcept {
    const std::lock_guard guard{lock_};
    if (count_ == places || (!running_ && !start())) return false;
    waiting_[count_++] = {&one, how, std::chrono::steady_clock::now() + std::chrono::microseconds{roll(200)}};
    changes_.fetch_add(1, std::memory_order_relaxed);  // the kernel orders it before the wake-up
    futex_wake(&changes_);
    return true;
  }

  // Makes one of the late wake-ups now, on this thread, or waits for the one that the thread is making. False: there is none.
  bool hurry() noexcept {
    std::unique_lock guard{lock_};
    if (count_ != 0) {
      const entry one = take_out(waiting_[roll(static_cast<unsigned>(count_))]);
      guard.unlock();
      wait_watch::wake(*one.who, one.how);
      return true;
    }
    if (waker_ == 0 || waker_ == this_thread_id()) return false;
    // What the thread wakes may go on inside the wake-up, and wait for the caller of this function. So this waits only for
    // as long as a post takes where a loaded machine has preempted the thread.
    const when enough = std::chrono::steady_clock::now() + std::chrono::seconds{5};
    while (waker_ != 0 && std::chrono::steady_clock::now() < enough) {
      guard.unlock();
      ::sched_yield();
      guard.lock();
    }
    return waker_ == 0;
  }

  // In the child of a fork(), which has neither the thread nor chaos: wakes the sleepers that the thread had, on this thread.
  void before_fork() noexcept { lock_.lock(); }
  void in_parent() noexcept { lock_.unlock(); }
  void in_child() noexcept {
    running_ = false;
    waker_ = 0;
    lock_.unlock();
    wait_watch::begin(nullptr);
    while (count_ != 0) {
      const entry one = waiting_[--count_];
      wait_watch::wake(*one.who, one.how);
    }
  }

 private:
  static constexpr std::size_t places = 64;
  struct entry {
    sleeper* who = nullptr;
    wake_up how = wake_up::completed;
    when due{};
  };

  // Under the lock, as start().
  entry take_out(entry& from) noexcept {
    const entry one = from;
    from = waiting_[--count_];
    return one;
  }

  bool start() noexcept {
    const helper_signals as_helper;
    pthread_t thread;
    running_ = pthread_create(
                   &thread, nullptr,
                   [](void* self) -> void* {
                     static_cast<late_wake_ups*>(self)->run();
                     return nullptr;
                   },
                   this) == 0;
    if (running_) pthread_detach(thread);
    return running_;
  }

  [[noreturn]] void run() noexcept {
    std::unique_lock guard{lock_};
    for (;;) {
      const std::uint32_t seen = changes_.load(std::memory_order_relaxed);  // under the lock
      entry* next = nullptr;
      for (std::size_t i = 0; i != count_; ++i)
        if (next == nullptr || waiting_[i].due < next->due) next = &waiting_[i];
      if (next == nullptr || next->due > std::chrono::steady_clock::now()) {
        const when until = next != nullptr ? next->due : when{};
        const bool for_ever = next == nullptr;
        guard.unlock();
        if (for_ever)
          futex_wait(&changes_, seen);
        else
          futex_wait_until(&changes_, seen, until);
        guard.lock();
        continue;
      }
      const entry one = take_out(*next);
      waker_ = this_thread_id();
      guard.unlock();
      wait_watch::wake(*one.who, one.how);
      guard.lock();
      waker_ = 0;
    }
  }

  std::mutex lock_;  // of all that follows
  entry waiting_[places]{};
  std::size_t count_ = 0;
  bool running_ = false;
  std::uintptr_t waker_ = 0;               // the thread, while it wakes one
  std::atomic<std::uint32_t> changes_{0};  // what the thread sleeps on
};

// Never destroyed: waits may end in the last destructors of the process.
constinit late_wake_ups late;

// A task without an executor goes on inside the call that wakes it, and is promised that.
bool may_be_late(sleeper& one) noexcept {
  const root* task = root::of(one);
  return task == nullptr || (task->env != nullptr && task->env->executor != nullptr);
}

constexpr wait_watch chaos{.parking = [](sleeper&) noexcept { give_way(); },
                           .parked = [](sleeper&, bool) noexcept { give_way(); },
                           .waking =
                               [](sleeper& one, wake_up how) noexcept {
                                 give_way();
                                 return roll(2) == 0 && may_be_late(one) && late.take(one, how);
                               },
                           .stopping = [](sleeper&) noexcept { give_way(); },
                           .ran_dry = []() noexcept { return late.hurry(); }};

}  // namespace

void begin_chaos_if_asked() noexcept {
  static const bool once = [] {
    const char* text = std::getenv("WEFT_CHAOS");
    if (text == nullptr || *text == '\0') return false;
    seed.store(std::strtoull(text, nullptr, 10), std::memory_order_relaxed);
    std::fprintf(stderr, "weft: chaos, with seed %s\n", text);
    pthread_atfork([] { late.before_fork(); }, [] { late.in_parent(); }, [] { late.in_child(); });
    wait_watch::begin(&chaos);
    return true;
  }();
  static_cast<void>(once);
}

}  // namespace weft::detail

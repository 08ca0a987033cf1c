// What adapters of libgo have in common: its headers, which need some care, and how something is run by it. Without hooks.
#pragma once

// libgo's headers define __const__ away, which other headers mean, and take nullptr_t for a global name.
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>
using std::nullptr_t;

#include <libgo/coroutine.h>

namespace bench {

/// Calls `f` in a coroutine, with the calling thread for its scheduler's only one. Throws what `f` throws.
template <class F>
void in_libgo(F f) {
  std::exception_ptr failure;
  go[&] {
    try {
      f();
    } catch (...) {
      failure = std::current_exception();
    }
    co_sched.Stop();
  };
  co_sched.Start(1);
  if (failure) std::rethrow_exception(failure);
}

/// A scheduler on threads of its own, which end with the program.
class libgo_threads {
 public:
  explicit libgo_threads(std::size_t threads) { co_sched.goStart(static_cast<int>(threads)); }
  libgo_threads(const libgo_threads&) = delete;
  ~libgo_threads() { co_sched.Stop(); }

  /// From one of its coroutines makes `count` that call `f`; returns when each has.
  template <class F>
  void run(std::size_t count, F f) {
    left_.store(count, std::memory_order_relaxed);
    go[&, count] {
      for (std::size_t i = 0; i != count; ++i) go[&] {
          f();
          if (left_.fetch_sub(1, std::memory_order_acq_rel) == 1) left_.notify_one();
        };
    };
    while (const std::size_t now = left_.load(std::memory_order_acquire)) left_.wait(now);
  }

 private:
  std::atomic<std::size_t> left_{0};  // of those that run() has made; here, since the last one may still notify
};

}  // namespace bench

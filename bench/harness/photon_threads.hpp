// PhotonLibOS's threads (its fibers) on several of the system's: its WorkPool, which deals out what it is given. They do
// not move afterwards. Part of adapters.
#pragma once

#include <photon/common/alog.h>
#include <photon/photon.h>
#include <photon/thread/stack-allocator.h>
#include <photon/thread/thread.h>
#include <photon/thread/workerpool.h>

#include <atomic>
#include <cstddef>

namespace bench {

class photon_threads {
 public:
  /// `kept`: so many of its threads that have ended stay for what comes next, on each of the system's. 0: none, and what
  /// their stacks were goes back to the system.
  photon_threads(std::size_t threads, std::size_t kept)
      : pool_{with_stacks(threads, kept), 0, 0, static_cast<int>(kept)} {}

  /// Has it make `count` that call `f`; returns when each has.
  template <class F>
  void run(std::size_t count, F f) {
    left_.store(count, std::memory_order_relaxed);
    const auto one = [&] {
      f();
      if (left_.fetch_sub(1, std::memory_order_acq_rel) == 1) left_.notify_one();
    };
    for (std::size_t i = 0; i != count; ++i) pool_.async_call(new auto{one});
    while (const std::size_t now = left_.load(std::memory_order_acquire)) left_.wait(now);
  }

 private:
  // Its pool of stacks, before a thread takes one; and silence.
  static std::size_t with_stacks(std::size_t threads, std::size_t kept) {
    log_output_level = ALOG_FATAL;  // it logs to stdout, where figures are printed
    if (kept != 0) photon::use_pooled_stack_allocator();
    return threads;
  }

  std::atomic<std::size_t> left_{0};  // of those that run() has made; here, since the last one may still notify
  photon::WorkPool pool_;
};

}  // namespace bench

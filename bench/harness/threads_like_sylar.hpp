// sylar's fibers on several threads, and LioNet's, which are made like them: what adapters of the two have in common.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

namespace bench {

/// A scheduler on threads of its own. Threads that have nothing to do look again and again.
template <class Scheduler, class Fiber>
class threads_like_sylar {
 public:
  explicit threads_like_sylar(std::size_t threads) : scheduler_{threads} {}
  threads_like_sylar(const threads_like_sylar&) = delete;
  ~threads_like_sylar() { scheduler_.stop(); }

  /// Makes `count` fibers that call `f`, and gives them to the scheduler at once; returns when each has.
  template <class F>
  void run(std::size_t count, F f) {
    left_.store(count, std::memory_order_relaxed);
    const auto one = [&] {
      f();
      if (left_.fetch_sub(1, std::memory_order_acq_rel) == 1) left_.notify_one();
    };
    std::vector<typename Fiber::ptr> all;
    all.reserve(count);
    for (std::size_t i = 0; i != count; ++i) all.push_back(std::make_shared<Fiber>(one));
    scheduler_.schedule(all.begin(), all.end());
    while (const std::size_t now = left_.load(std::memory_order_acquire)) left_.wait(now);
  }

 private:
  struct started : Scheduler {
    explicit started(std::size_t threads) : Scheduler{threads, false, "bench"} {
      this->m_stopping = true;  // LioNet's start() reads both before anybody has written them
      this->m_autoStop = false;
      this->start();
    }
  };

  started scheduler_;
  std::atomic<std::size_t> left_{0};  // of those that run() has made; here, since the last one may still notify
};

}  // namespace bench

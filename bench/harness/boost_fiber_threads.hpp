// Boost.Fiber's fibers on several threads, which steal from each other. Part of adapters.
#pragma once

#include <atomic>
#include <boost/fiber/algo/work_stealing.hpp>
#include <boost/fiber/all.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace bench {

/// So many threads, of which the calling one is one.
class boost_fiber_threads {
 public:
  explicit boost_fiber_threads(std::size_t threads) {
    if (threads == 1) return;  // who steals from others needs others
    for (std::size_t i = 1; i != threads; ++i)
      others_.emplace_back([this, threads] {
        join_in(threads);
        std::unique_lock held{lock_};
        changed_.wait(held, [this] { return over_.load(std::memory_order_acquire); });
      });
    join_in(threads);
  }
  boost_fiber_threads(const boost_fiber_threads&) = delete;
  ~boost_fiber_threads() {
    over_.store(true, std::memory_order_release);
    notify();
    for (std::thread& one : others_) one.join();
  }

  /// Makes `count` fibers that call `f`; returns when each has.
  template <class F, class Stacks = boost::fibers::default_stack>
  void run(std::size_t count, F f, Stacks stacks = {}) {
    left_.store(count, std::memory_order_relaxed);
    for (std::size_t i = 0; i != count; ++i)
      boost::fibers::fiber{boost::fibers::launch::post, std::allocator_arg, Stacks{stacks},
                           [&] {
                             f();
                             if (left_.fetch_sub(1, std::memory_order_acq_rel) == 1) notify();
                           }}
          .detach();
    std::unique_lock held{lock_};
    changed_.wait(held, [this] { return left_.load(std::memory_order_acquire) == 0; });
  }

 private:
  // Waits until all have, as the algorithm wants.
  static void join_in(std::size_t threads) {
    boost::fibers::use_scheduling_algorithm<boost::fibers::algo::work_stealing>(static_cast<std::uint32_t>(threads),
                                                                                true);  // who finds nothing sleeps
  }

  void notify() {
    std::lock_guard held{lock_};
    changed_.notify_all();
  }

  boost::fibers::mutex lock_;
  boost::fibers::condition_variable changed_;  // of the two below
  std::atomic<std::size_t> left_{0};           // of those that run() has made
  std::atomic<bool> over_{false};
  std::vector<std::thread> others_;
};

}  // namespace bench

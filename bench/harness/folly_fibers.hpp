// What adapters of folly's fibers have in common: a manager of fibers, whose loop the calling thread runs.
#pragma once

#include <folly/fibers/FiberManager.h>
#include <folly/fibers/SimpleLoopController.h>

#include <cstddef>
#include <exception>
#include <memory>
#include <utility>

namespace bench {

class folly_fibers {
 public:
  /// Stacks of `stack` bytes; of fibers that have ended, `kept` are there for the next ones.
  folly_fibers(std::size_t stack, std::size_t kept)
      : folly_fibers{std::make_unique<folly::fibers::SimpleLoopController>(), stack, kept} {}
  folly_fibers(const folly_fibers&) = delete;

  /// One that runs again after all others when it yields.
  template <class F>
  void add(F f) {
    manager_.addTask(std::move(f));
  }
  void yield() { manager_.yield(); }

  /// Calls `f` in a fiber, and runs all others meanwhile. Throws what `f` throws.
  template <class F>
  void run(F f) {
    std::exception_ptr failure;
    manager_.addTask([&] {
      try {
        f();
      } catch (...) {
        failure = std::current_exception();
      }
      loop_.stop();
    });
    loop_.loop([] {});
    if (failure) std::rethrow_exception(failure);
  }

  /// Runs fibers until `over()`, which is asked between turns.
  template <class Over>
  void run_until(Over over) {
    loop_.loop([&] {
      if (over()) loop_.stop();
    });
  }

 private:
  folly_fibers(std::unique_ptr<folly::fibers::SimpleLoopController> loop, std::size_t stack, std::size_t kept)
      : loop_{*loop}, manager_{std::move(loop), options(stack, kept)} {}

  static folly::fibers::FiberManager::Options options(std::size_t stack, std::size_t kept) {
    folly::fibers::FiberManager::Options all;
    all.stackSize = stack;
    all.maxFibersPoolSize = kept;
    return all;
  }

  folly::fibers::SimpleLoopController& loop_;
  folly::fibers::FiberManager manager_;
};

}  // namespace bench

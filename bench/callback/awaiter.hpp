// The awaiter that one writes around a callback where the library has no bridge of its own. It is the same for all of
// them, so that the workload shows what each adds to a foreign awaitable.
#pragma once

#include "workload.hpp"

#include <atomic>
#include <coroutine>
#include <cstdint>

namespace bench {

/// co_await increment{value} gives what bench_increment reports.
class increment {
 public:
  explicit increment(std::uint64_t value) noexcept : value_{value} {}
  increment(increment&& other) noexcept : value_{other.value_} {}  // before it is awaited only

  bool await_ready() const noexcept { return false; }

  bool await_suspend(std::coroutine_handle<> self) noexcept {
    sleeper_ = self;
    bench_increment(value_, &done, this);
    return !second_.test_and_set(std::memory_order_acq_rel);  // true: from here on the callback owns us
  }

  std::uint64_t await_resume() const noexcept { return value_; }

 private:
  static void done(void* context, std::uint64_t result) {
    auto& self = *static_cast<increment*>(context);
    self.value_ = result;
    if (self.second_.test_and_set(std::memory_order_acq_rel)) self.sleeper_.resume();
  }

  // The callback and the return of await_suspend race to set it. Who comes second goes on with the coroutine:
  //   edge result  value_ is written -> await_resume reads it;  sleeper_ is written -> done() resumes it
  std::atomic_flag second_{};
  std::uint64_t value_;
  std::coroutine_handle<> sleeper_;
};

}  // namespace bench

// One-time initialization. What holds for all primitives stands in sync.hpp.
#pragma once

#include <atomic>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <weft/detail/base/atomic.hpp>
#include <weft/detail/sync/gate.hpp>
#include <weft/mutex.hpp>
#include <weft/sync_stats.hpp>
#include <weft/task.hpp>

namespace weft {

/// Runs a function once: the first caller runs it, and others wait for its end. If it fails or is stopped, the next caller runs
/// its own.
///
/// Misuse    a function that waits for the same `once` in its own task ends the program with a sentence.
/// Lifetime  after call() has returned, the caller may destroy the `once`, also while the call that ran the function is still
///           returning. is_done() alone does not allow that.
/// Cost      when it is done: two loads, and the frame of a task that ends at once. is_done() avoids the frame.
class once {
 public:
  /// `fn` may be a plain function, or give something to await. What it throws is thrown to its caller.
  template <class F>
  auto call(F&& fn) {
    WEFT_EXPECTS_NO_DOOMED_TEMPORARY(F);
    return run<std::decay_t<F>>(*this, std::forward<F>(fn));
  }
  bool is_done() const noexcept { return state_.load(std::memory_order_acquire) == done; }  // <- done
  /// Counts of callers that waited for another one's function.
  sync_stats stats() const noexcept { return mutex_.stats(); }

 private:
  class awaiter;
  class turn;
  /// Ends the program if the coroutine is awaited, in its own task, by the one that has its turn.
  void expect_others(std::coroutine_handle<> caller) const noexcept;
  template <class F>
  static task<> run(once& self, F fn);

  mutex mutex_;
  static constexpr std::uintptr_t open = 0, done = 1;
  // open, done, or the address of the coroutine that runs the function. Written by the holder of the mutex. Relaxed but for
  // `done`: nobody follows the address. A coroutine compares it with those that await it, each of which has written it
  // before, or never.
  //
  //   edge done  what it did  ->  who finds it done
  detail::atomic<std::uintptr_t> state_{open};
};

/// Of the one that does it, or finds it done.
class once::turn {
 public:
  /// Made by `once`, with its mutex held.
  turn(mutex::guard held, once& of, std::uintptr_t mine) noexcept : held_{held.release()}, of_{of}, mine_{mine} {}
  turn(const turn&) = delete;
  // And then it gives the mutex back.
  ~turn() {
    if (!of_.is_done()) of_.state_.store(open, std::memory_order_relaxed);  // as declared
  }

  /// False: it is done.
  bool begins() const noexcept {
    if (of_.is_done()) return false;
    of_.state_.store(mine_, std::memory_order_relaxed);  // as declared
    return true;
  }

 private:
  mutex::guard held_;
  once& of_;
  std::uintptr_t mine_;
};

class once::awaiter : public mutex::awaiter {
 public:
  explicit awaiter(once& of, std::size_t) noexcept : mutex::awaiter{of.mutex_, type}, of_{of} {}
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> caller) noexcept {
    caller_ = reinterpret_cast<std::uintptr_t>(caller.address());
    if (of_.mutex_.is_locked()) [[unlikely]]
      of_.expect_others(caller);
    return mutex::awaiter::await_suspend(caller);
  }
  turn await_resume() noexcept { return turn{mutex::awaiter::await_resume(), of_, caller_}; }

 private:
  static constexpr detail::wait_type type = type_called("once");

  once& of_;
  std::uintptr_t caller_ = 0;
};

template <class F>
task<> once::run(once& self, F fn) {
  if (self.is_done() && !self.mutex_.is_locked()) co_return;  // who did it has left: nobody comes back here
  const turn mine = co_await detail::at_gate<awaiter, once>{self};
  if (!mine.begins()) co_return;
  if constexpr (awaitable<std::invoke_result_t<F&>>)
    static_cast<void>(co_await fn());
  else
    fn();
  self.state_.store(done, std::memory_order_release);  // -> done
}

}  // namespace weft

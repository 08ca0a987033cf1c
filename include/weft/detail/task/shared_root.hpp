// The root of a task that many await. Part of shared_task.hpp.
#pragma once

#include <atomic>
#include <coroutine>
#include <cstddef>
#include <utility>
#include <weft/detail/base/atomic.hpp>
#include <weft/detail/base/forward.hpp>
#include <weft/detail/base/lock.hpp>
#include <weft/detail/core/top_root.hpp>
#include <weft/detail/core/waiter.hpp>
#include <weft/env.hpp>
#include <weft/task.hpp>

namespace weft::detail {

/// What all copies of a shared task refer to; all but the result.
class shared_root : public top_root {
 public:
  explicit shared_root(std::coroutine_handle<> outermost, promise_base& promise) noexcept;
  shared_root(const shared_root&) = delete;

  void retain() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }  // the copied handle holds one
  /// True: that was the last.
  bool release() noexcept { return references_.fetch_sub(1, std::memory_order_acq_rel) == 1; }  // -> last, <- last

  enum class phase { unstarted, running, ended, stopped };
  phase now() const noexcept { return phase_.load(std::memory_order_acquire); }  // <- ended

  /// Enters the line and parks `self`, which suspends; starts the task if nobody has. False: it has ended, and `self`
  /// need not wait. After true, the waiter may be gone.
  bool wait(waiter& one, root& self) noexcept;

  /// By a stopper of `one`'s sleeper.
  on_stop leave(waiter& one) noexcept;

  /// By who has made it: starts it here and now, for nobody yet. It has no executor, and whoever leaves stops nothing.
  void start_here() noexcept;

 protected:
  ~shared_root() = default;
  /// It has ended, with a result: the frame may go, and its arguments with it.
  virtual void settle() noexcept = 0;
  virtual void destroy() noexcept = 0;

 private:
  void transition_to_running() noexcept;
  static void ended(root& self, bool stopped) noexcept;

  tiny_lock lock_;
  waiter_line line_;              // under the lock
  waiter* joiner_ = nullptr;      // the last to leave, which waits for the end; under the lock
  bool runs_for_nobody_ = false;  // set before others know it
  //   edge ended  the result, and all that the task did  ->  who sees `ended` or `stopped`
  atomic<phase> phase_{phase::unstarted};  // written under the lock
  // Handles, and one while it runs.
  //   edge last  the last use of a handle  ->  the destruction
  atomic<std::size_t> references_{1};
  weft::env own_env_;
};

template <class T>
class shared_state final : public shared_root {
 public:
  explicit shared_state(std::coroutine_handle<task_promise<T>> frame) noexcept
      : shared_root{frame, frame.promise()}, frame_{frame} {}

  outcome<T>& result() noexcept { return result_; }
  void settle() noexcept override {
    result_.take_from(frame_.promise());
    frame_.destroy();
  }
  void destroy() noexcept override {
    if (now() == phase::unstarted) let_go(frame_);
    delete this;
  }

 private:
  std::coroutine_handle<task_promise<T>> frame_;
  outcome<T> result_;
};

template <class T>
struct shared_promise : task_promise<T> {
  using task_promise<T>::task_promise;
  shared_task<T> get_return_object();
};

}  // namespace weft::detail

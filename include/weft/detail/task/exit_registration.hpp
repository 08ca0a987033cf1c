// What on_scope_exit gives: awaited in a task, it registers a cleanup.
//
// Each cleanup is a boundary of its own between the task and what awaits it: where the task returns, or a stop that
// destroyed its frame arrives, the cleanup runs; then the return, or the stop, goes on outward. The last one to be
// registered stands innermost, so it runs first.
//
// Rejected: a list of cleanups in the promise: a word in every frame, and a test at every return.
#pragma once

#include <coroutine>
#include <utility>
#include <weft/task.hpp>

namespace weft::detail {

/// Has `cleanup` run when the coroutine `self`, which runs now, has ended. Throws std::bad_alloc.
void run_at_exit(std::coroutine_handle<> self, task<>&& cleanup);

class WEFT_TO_BE_AWAITED("a cleanup is registered by co_await on_scope_exit(...)") exit_registration
    : public knows_roots {
 public:
  explicit exit_registration(task<>&& cleanup) noexcept : cleanup_{std::move(cleanup)} {}

  bool await_ready() const noexcept { return false; }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> self) {
    static_assert(
        of_a_task<Promise>,
        "on_scope_exit belongs in a task: a generator may be dropped, by a destructor, which can't wait for a "
        "cleanup: register it in the task that consumes");
    run_at_exit(self, std::move(cleanup_));
    return false;
  }
  void await_resume() const noexcept {}

 private:
  task<> cleanup_;
};

template <class F, class... Args>
task<> call_at_exit(F f, Args... args) {
  co_await std::move(f)(std::move(args)...);
}

}  // namespace weft::detail

// The awaiters that move a task to another executor. Part of hop.hpp.
//
// A task belongs to its root's executor. One that hops gives its root another environment, which differs in its
// executor, and comes between itself and whoever awaits it as a boundary: where the task returns, or a stop that
// destroyed its frame arrives, the boundary has the root go home, and there the return, or the stop, goes on outward. So
// nobody who awaits a task finds himself elsewhere, and no other await compares anything.
//
//   task    ->  boundary        ->  who awaits the task
//   on ex       env of the hop      env as it was
//
// A second hop of one task puts its boundary inside the first; on the way out only the last of such a chain hops. A
// cleanup that was registered between two hops runs where the task was then.
//
// A job in an executor's queue can't be taken out, so a hop under way is not stopped: the task arrives, and its next wait
// is a stop point. Going home is none at all.
//
// An async_generator that hops comes home at each co_yield, by the same boundary, and hops again when the next value is
// asked for: it notes where it wants to be (goes_on_on). So its consumer, which may be another one by then, is never
// elsewhere, and a generator at rest belongs to no executor.
//
// Rejected: (a) comparing executors at each return: one compare a level, for what almost no task does. (b) A hop that
// lasts beyond the task, as other libraries have it: a caller can't see from a call where it will find itself.
#pragma once

#include <coroutine>
#include <exception>
#include <new>
#include <type_traits>
#include <utility>
#include <weft/detail/base/config.hpp>
#include <weft/detail/core/root.hpp>
#include <weft/detail/task/pipe.hpp>
#include <weft/executor.hpp>
#include <weft/task.hpp>

namespace weft::detail {

/// Moves the root `mine` to `to`, where `self`, its innermost frame, resumes. False: it is there already, so `self` need not
/// suspend. After true, `self` may run elsewhere, or be gone. Throws std::bad_alloc.
bool hop_to(std::coroutine_handle<> self, root& mine, executor& to);

/// Puts the root that suspends at the end of its executor's queue.
void repost(root& mine) noexcept;

template <class Promise>
concept of_a_generator = requires(Promise& promise, executor* where) { promise.goes_on_on(where); };

class WEFT_TO_BE_AWAITED("a task hops when it awaits this") hop : public knows_roots {
 public:
  explicit hop(executor& to) noexcept : to_{&to} {}

  bool await_ready() const noexcept { return false; }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> caller) {
    static_assert(of_a_task<Promise> || of_a_generator<Promise>, "resume_on belongs in a task or an async_generator");
    root& self = suspending(caller);
    if (self.sleeper::stop_requested()) return (end_stopped(self), true);
    if constexpr (of_a_generator<Promise>) {
      executor* const before = caller.promise().goes_on_on(to_);
      try {
        return hop_to(caller, self, *to_);  // as below
      } catch (...) {                       // there is no memory: the body is where it was
        caller.promise().goes_on_on(before);
        throw;
      }
    } else {
      return hop_to(caller, self, *to_);  // the task may run elsewhere, or be gone, after this line
    }
  }
  void await_resume() const noexcept {}

 private:
  executor* to_;
};

class WEFT_TO_BE_AWAITED("a task yields when it awaits this") yielding : public knows_roots {
 public:
  bool await_ready() const noexcept { return false; }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> caller) const noexcept {
    repost(suspending(caller));  // the task may run elsewhere, or be gone, after this line
  }
  void await_resume() const noexcept {}
};

template <class Awaitable>
task<await_result<Awaitable>> start_on_in_task(executor& ex, Awaitable work) {
  co_await hop{ex};
  co_return co_await static_cast<Awaitable&&>(work);
}

/// Awaits a task, then hops; a stop of the task passes through.
template <class T>
class WEFT_TO_BE_AWAITED("a task goes on elsewhere when it awaits this") continued : public knows_roots, boundary {
 public:
  continued(task<T>&& callee, executor& to) noexcept
      : boundary{returned, stopped_here, nullptr, nullptr},
        to_{&to},
        callee_{task_access::release(std::move(callee))} {}
  continued(continued&& other) noexcept  // before it is awaited
      : boundary{returned, stopped_here, nullptr, nullptr},
        to_{other.to_},
        callee_{std::exchange(other.callee_, nullptr)} {}
  ~continued() {
    if (callee_) destroy_frame(std::exchange(callee_, nullptr));
  }

  bool await_ready() const noexcept { return false; }
  template <class Promise>
  std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> caller) noexcept {
    static_assert(of_a_task<Promise>, "continue_on belongs in a task: another coroutine does not end once");
    root& self = suspending(caller);  // it hops where the callee returns
    continuation = caller;
    owner = &self;
    enter_root(self, callee_, handle());
    return transfer(self, callee_);
  }
  T await_resume() {
    const frame_guard<T> ended{std::exchange(callee_, nullptr)};
    if (no_memory_) throw std::bad_alloc{};
    return ended.frame.promise().take();
  }

 private:
  static void returned(frame* self) noexcept {
    auto& mine = *static_cast<continued*>(static_cast<boundary*>(self));
    root& here = *mine.owner;
    const std::coroutine_handle<> caller = mine.continuation;
    here.top = caller;
    try {
      if (hop_to(caller, here, *mine.to_)) return;
    } catch (const std::bad_alloc&) {  // thrown again where the task goes on
      mine.no_memory_ = true;
    }
    run_next(caller);
  }
  static void stopped_here(boundary& self) noexcept {
    auto& mine = static_cast<continued&>(self);
    unwind_on(*mine.owner, mine.callee_, mine.continuation);  // mine is gone after this line
  }

  executor* to_;
  std::coroutine_handle<task_promise<T>> callee_;
  bool no_memory_ = false;
};

struct start_on_kind {
  template <class Awaitable, class>
  WEFT_COROUTINE_TAKES_OVER static auto around(Awaitable&& work, executor* ex) {
    return start_on_in_task<Awaitable>(*ex, std::forward<Awaitable>(work));
  }
};
struct continue_on_kind {
  template <class Awaitable, class>
  static auto around(Awaitable&& before, executor* ex) {
    return continued<await_result<Awaitable>>{as_task(std::forward<Awaitable>(before)), *ex};
  }
};

}  // namespace weft::detail

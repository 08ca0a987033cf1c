// A root that keeps running when its awaiter is stopped. Part of detach_on_stop.hpp.
#pragma once

#include <coroutine>
#include <type_traits>
#include <utility>
#include <weft/detail/core/handover.hpp>
#include <weft/detail/core/root.hpp>
#include <weft/detail/core/waiter.hpp>
#include <weft/detail/task/handed.hpp>
#include <weft/detail/task/pipe.hpp>
#include <weft/env.hpp>
#include <weft/error.hpp>
#include <weft/task.hpp>

namespace weft::detail {

/// What the operation and the task share: the outcome. The last to leave tells of a failure that nobody took.
template <class T>
class detached_outcome final : public future_state, public handed_outcome<T> {
 public:
  using handed::complete;
  using handed::leave;
  using handed::wait;

  void drop() noexcept {
    if (!this->release()) return;
    if (this->is_exception() && this->exception() != nullptr) lose_error("detach_on_stop", this->exception());
    delete this;
  }
};

/// The environment that a detached root keeps for itself: the clock and the executor, if that is no sync_wait.
struct detached_env {
  explicit detached_env(const root& from) noexcept;
  weft::env own_env;
};

template <class T>
class detached_root final : detached_env, public top_root {
 public:
  detached_root(const root& from, task<T>&& work, detached_outcome<T>& outcome) noexcept
      : detached_env{from},
        top_root{root_kind::task, &own_env, ended},
        frame_{task_access::release(std::move(work))},
        outcome_{&outcome} {
    adopt(frame_, frame_.promise());
    outcome_->retain();
  }

  void never_begin() noexcept {
    frame_.destroy();
    outcome_->drop();
    delete this;
  }

 private:
  static void ended(root& self, bool stopped) noexcept {
    auto& mine = static_cast<detached_root&>(self);
    detached_outcome<T>& outcome = *mine.outcome_;
    if (!stopped) {
      outcome.take_from(mine.frame_.promise());
      mine.frame_.destroy();
    }
    leave_root();
    delete &mine;
    outcome.complete(stopped ? wake_up::stopped : wake_up::completed);
    outcome.drop();
  }

  std::coroutine_handle<task_promise<T>> frame_;
  detached_outcome<T>* outcome_;
};

template <class T>
class detaching_awaiter : waiter {
 public:
  explicit detaching_awaiter(task<T>&& work) noexcept : waiter{type}, work_{std::move(work)} {}
  detaching_awaiter(const detaching_awaiter&) = delete;
  ~detaching_awaiter() {
    if (auto* mine = std::exchange(outcome_, nullptr); mine != nullptr) mine->drop();
  }

  bool await_ready() const noexcept { return false; }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> caller) {
    root& self = suspending(caller);
    if (self.sleeper::stop_requested()) return end_stopped(self);
    outcome_ = new detached_outcome<T>;
    detached_outcome<T>& outcome = *outcome_;
    auto* operation = new detached_root<T>{self, std::move(work_), outcome};
    if (!self.park(*this)) {
      operation->never_begin();
      return end_stopped(self);
    }
    outcome.wait(*this);  // self may be gone after this line; the operation is not, since it has not begun
    run_next(operation->top, *operation);
  }
  T await_resume() { return outcome_->take(); }

 private:
  static on_stop leave(waiter& self) noexcept {
    auto& mine = static_cast<detaching_awaiter&>(self);
    return mine.outcome_->leave(mine);
  }
  static constexpr wait_type type{.leave = leave, .name = "work that a stop leaves behind"};

  task<T> work_;
  detached_outcome<T>* outcome_ = nullptr;
};

template <class T>
class WEFT_TO_BE_AWAITED("detach_on_stop does nothing until it is awaited") detaching : public knows_roots {
 public:
  explicit detaching(task<T>&& work) noexcept : work_{std::move(work)} {}
  detaching_awaiter<T> operator co_await() && noexcept { return detaching_awaiter<T>{std::move(work_)}; }

 private:
  task<T> work_;
};

/// A call, with all that it needs in its frame.
template <class F, class... Args>
task<outcome_of_call<F, Args...>> call_owned(F f, Args... args) {
  auto&& work = call(std::move(f), std::move(args)...);
  co_return co_await std::forward<decltype(work)>(work);
}

}  // namespace weft::detail

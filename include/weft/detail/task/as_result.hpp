// A boundary at which a stop ends: what as_result awaits with. Part of task.hpp.
#pragma once

#include <coroutine>
#include <type_traits>
#include <utility>
#include <weft/detail/core/root.hpp>
#include <weft/detail/task/as_task.hpp>
#include <weft/detail/task/task_awaiter.hpp>
#include <weft/error.hpp>

namespace weft {
template <class T>
class task;
}  // namespace weft

namespace weft::detail {

/// Awaits a task and gives its result, whichever it is: a boundary, at which a stop ends.
template <class T>
class WEFT_TO_BE_AWAITED("as_result does nothing until it is awaited") WEFT_ELIDABLE as_result_awaiter
    : public knows_roots,
      boundary {
 public:
  explicit as_result_awaiter(task<T>&& callee) noexcept
      : boundary{go_on, stopped_here, nullptr, nullptr}, callee_{task_access::release(std::move(callee))} {}
  as_result_awaiter(as_result_awaiter&& other) noexcept  // before it is awaited
      : boundary{go_on, stopped_here, nullptr, nullptr}, callee_{std::exchange(other.callee_, nullptr)} {}
  ~as_result_awaiter() {
    if (callee_) destroy_frame(callee_);
  }

  bool await_ready() const noexcept { return false; }

  template <class Promise>
  WEFT_PER_AWAIT std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> caller) noexcept {
    root& self = *caller.promise().owner;
    continuation = caller;
    owner = &self;
    enter_root(self, callee_, handle());
    return transfer(self, callee_);
  }

  result<T> await_resume() noexcept {
    if (!callee_) return result<T>{};
    frame_guard<T> ended{std::exchange(callee_, nullptr)};
    return ended.frame.promise().take_result();
  }

 private:
  static void stopped_here(boundary& self) noexcept {
    auto& mine = static_cast<as_result_awaiter&>(self);
    mine.callee_ = nullptr;  // unwound
    go_on(&mine);
  }

  std::coroutine_handle<task_promise<T>> callee_;
};

}  // namespace weft::detail

// The root of a task that code starts which is no coroutine. Part of task.hpp.
#pragma once

#include <coroutine>
#include <type_traits>
#include <utility>
#include <weft/detail/base/invoke.hpp>
#include <weft/detail/core/top_root.hpp>
#include <weft/detail/task/task_awaiter.hpp>
#include <weft/env.hpp>
#include <weft/error.hpp>
#include <weft/executor.hpp>
#include <weft/stop.hpp>

namespace weft {
template <class T>
class task;
}  // namespace weft

namespace weft::detail {

/// The root of a started task: owns everything, and ends with it.
template <class T, class Callback>
class started_root final : top_root {
 public:
  static void start(executor* where, task<T>&& work, Callback&& callback, stop_token stop) {
    auto* self = new started_root{where, std::move(work), std::move(callback), stop};
    self->adopt(self->frame_, self->frame_.promise());
    if (where != nullptr)
      self->schedule();
    else
      self->run_here();  // self may be gone after this line
  }

 private:
  struct stop_it {
    started_root* target;
    void operator()() const noexcept { target->stop_by(target->own_env_.stop); }
  };

  started_root(executor* where, task<T>&& work, Callback&& callback, stop_token stop)
      : top_root{root_kind::task, &own_env_, ended},
        own_env_{where, stop},
        callback_(std::move(callback)),
        frame_{task_access::release(std::move(work))},
        stop_{stop, stop_it{this}} {}

  static void ended(root& self, bool stopped) noexcept {
    auto& mine = static_cast<started_root&>(self);
    Callback callback = std::move(mine.callback_);
    try {
      // Mine is gone before the callback begins. Not through invoke(), which would move the result once more.
      if constexpr (std::is_member_pointer_v<Callback>)
        detail::invoke(std::move(callback), mine.leave(stopped));
      else
        std::move(callback)(mine.leave(stopped));
    } catch (...) {
      fail_thrown("the callback of a start() threw, where nobody could catch it");
    }
  }

  // Straight into the callback's parameter: a value is moved once, and an exception that this throws is the result.
  result<T> leave(bool stopped) noexcept {
    struct leave_at_exit {
      started_root& mine;
      bool stopped;
      ~leave_at_exit() {
        if (!stopped) mine.frame_.destroy();
        leave_root();
        delete &mine;  // waits for a stop that is being delivered
      }
    } left{*this, stopped};
    if (stopped) return result<T>{};
    return frame_.promise().take_result();
  }

  weft::env own_env_;
  Callback callback_;
  std::coroutine_handle<task_promise<T>> frame_;
  stop_callback<stop_it> stop_;
};

}  // namespace weft::detail

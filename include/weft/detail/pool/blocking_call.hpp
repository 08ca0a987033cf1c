// A blocking call on its way. Part of blocking.hpp.
#pragma once

#include <cstddef>
#include <exception>
#include <type_traits>
#include <utility>
#include <weft/detail/base/config.hpp>
#include <weft/detail/base/invoke.hpp>
#include <weft/detail/base/standard.hpp>
#include <weft/detail/core/root.hpp>
#include <weft/detail/core/waiter.hpp>
#include <weft/task.hpp>

namespace weft::detail {

class blocking_core;

/// A call on its way. Lives in the frame that waits for it.
class blocking_call : public waiter {
 public:
  blocking_call(blocking_core& of, void (*call)(blocking_call&) noexcept) noexcept
      : waiter{type}, of_{&of}, call_{call} {}
  blocking_call(const blocking_call&) = delete;

  bool suspend(root& self);
  void run() noexcept { call_(*this); }
  /// Instead of run(): there is no thread for it.
  void refuse() noexcept { refused_ = true; }
  void expect_thread() const {
    if (refused_) [[unlikely]]
      throw_no_thread();
  }
  [[noreturn]] static void throw_no_thread();

 protected:
  ~blocking_call() = default;

 private:
  static on_stop leave(waiter& self) noexcept;
  static constexpr wait_type type{.leave = leave, .name = "blocking call"};

  blocking_core* of_;
  void (*call_)(blocking_call&) noexcept;
  bool refused_ = false;
};

template <class T, class F>
class blocking_call_of final : public blocking_call {
 public:
  blocking_call_of(blocking_core& of, F& f) noexcept : blocking_call{of, call}, f_{&f} {}

  T take() { return ended_.take(); }

 private:
  static void call(blocking_call& self) noexcept {
    auto& mine = static_cast<blocking_call_of&>(self);
    try {
      if constexpr (std::is_void_v<T>) {
        (*mine.f_)();
        mine.ended_.set_value(nothing{});
      } else {
        mine.ended_.set_value((*mine.f_)());
      }
    } catch (...) {
      mine.ended_.set_exception(std::current_exception());
    }
  }

  F* f_;
  outcome<T> ended_;
};

struct blocking_wait : knows_roots {
  blocking_call* one;
  explicit blocking_wait(blocking_call& call) noexcept : one{&call} {}
  bool await_ready() const noexcept { return false; }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> caller) const {
    return one->suspend(suspending(caller));  // the task may run elsewhere, or be gone, after this line
  }
  void await_resume() const { one->expect_thread(); }
};

template <class T, class F, class... Args>
task<T> run_blocking(blocking_core* where, F f, Args... args) {
  auto all = [&]() -> T { return detail::invoke(std::move(f), std::move(args)...); };
  blocking_call_of<T, decltype(all)> call{*where, all};
  co_await blocking_wait{call};
  co_return call.take();
}

/// The process's own, made at its first use.
blocking_core& process_blocking_core();

template <class F, class... Args>
using blocking_result = kept_result<std::decay_t<F>, std::decay_t<Args>...>;

}  // namespace weft::detail

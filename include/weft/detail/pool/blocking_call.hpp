// A blocking call on its way. Part of blocking.hpp.
#pragma once

#include <cstddef>
#include <exception>
#include <memory>
#include <type_traits>
#include <utility>
#include <weft/detail/base/config.hpp>
#include <weft/detail/base/invoke.hpp>
#include <weft/detail/base/owned.hpp>
#include <weft/detail/base/standard.hpp>
#include <weft/detail/core/root.hpp>
#include <weft/detail/core/waiter.hpp>
#include <weft/error.hpp>
#include <weft/task.hpp>

namespace weft::detail {

class blocking_core;

/// What a call that may be abandoned has apart from the frame that waits for it: its thread has it for itself then.
class abandonable_call {
 public:
  abandonable_call() = default;
  abandonable_call(const abandonable_call&) = delete;
  virtual ~abandonable_call() = default;

  virtual void run() noexcept = 0;
  /// By its thread, where it was abandoned: tells of its failure, and deletes it.
  virtual void drop() noexcept = 0;

  // All three under the pool's lock. Before it begins, and where there is no thread for it, it can't be abandoned.
  void transition_to_running() noexcept { state_ = state::running; }
  /// False: it was abandoned.
  bool transition_to_ended() noexcept {
    if (state_ == state::abandoned) return false;
    state_ = state::ended;
    return true;
  }
  /// False: it does not run.
  bool transition_to_abandoned() noexcept {
    if (state_ != state::running) return false;
    state_ = state::abandoned;
    return true;
  }

 private:
  enum class state { waiting, running, ended, abandoned };
  state state_ = state::waiting;
};

/// A call on its way. Lives in the frame that waits for it.
class blocking_call : public waiter {
 public:
  blocking_call(blocking_core& of, void (*call)(blocking_call&) noexcept) noexcept
      : waiter{type}, of_{&of}, call_{call} {}
  blocking_call(blocking_core& of, abandonable_call& own) noexcept : waiter{type}, of_{&of}, abandonable_{&own} {}
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

  /// Null: it can't be abandoned.
  abandonable_call* abandonable() const noexcept { return abandonable_; }
  /// By a stopper, with the pool's lock. From then on its thread does not know of this.
  void abandon() noexcept { is_abandoned_ = true; }

 protected:
  ~blocking_call() = default;
  bool is_abandoned() const noexcept { return is_abandoned_; }

 private:
  static on_stop leave(waiter& self) noexcept;
  static constexpr wait_type type{.leave = leave, .name = "blocking call"};

  blocking_core* of_;
  void (*call_)(blocking_call&) noexcept = nullptr;
  abandonable_call* abandonable_ = nullptr;
  bool refused_ = false;
  bool is_abandoned_ = false;
};

/// Has `f` called, and keeps what it gives or throws.
template <class T, class F>
void call_into(outcome<T>& ended, F& f) noexcept {
  try {
    if constexpr (std::is_void_v<T>) {
      f();
      ended.set_value(nothing{});
    } else {
      ended.set_value(f());
    }
  } catch (...) {
    ended.set_exception(std::current_exception());
  }
}

template <class T, class F>
class blocking_call_of final : public blocking_call {
 public:
  blocking_call_of(blocking_core& of, F& f) noexcept : blocking_call{of, call}, f_{&f} {}

  T take() { return ended_.take(); }

 private:
  static void call(blocking_call& self) noexcept {
    auto& mine = static_cast<blocking_call_of&>(self);
    call_into(mine.ended_, *mine.f_);
  }

  F* f_;
  outcome<T> ended_;
};

template <class T, class F>
class abandonable_call_of final : public abandonable_call {
 public:
  explicit abandonable_call_of(F&& f) : f_{std::move(f)} {}

  void run() noexcept override { call_into(ended_, f_); }
  void drop() noexcept override {
    if (ended_.is_exception()) lose_error("a blocking call that a stop has abandoned", ended_.exception());
    delete this;
  }
  T take() { return ended_.take(); }

 private:
  F f_;
  outcome<T> ended_;
};

/// In the frame: owns the call, unless it was abandoned.
template <class T, class F>
class owner_of_call final : public blocking_call {
 public:
  using call = abandonable_call_of<T, F>;
  owner_of_call(blocking_core& of, std::unique_ptr<call>&& own) noexcept
      : blocking_call{of, *own}, own_{std::move(own)} {}
  ~owner_of_call() {
    if (is_abandoned()) static_cast<void>(own_.release());
  }
  T take() { return own_->take(); }

 private:
  std::unique_ptr<call> own_;
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

template <class T, class F, class... Args>
auto make_abandonable(F& f, Args&... args) {
  auto all = [f = std::move(f), ... args = std::move(args)]() mutable -> T {
    return detail::invoke(std::move(f), std::move(args)...);
  };
  return std::make_unique<abandonable_call_of<T, decltype(all)>>(std::move(all));
}

template <class T, class F, class... Args>
task<T> run_abandonable(blocking_core* where, F f, Args... args) {
  static_assert(
      owns_nothing<F>,
      "abandon_on_stop: the function may capture nothing, for nobody waits until an abandoned call has ended: "
      "give it what it needs as arguments, which are moved into the call");
  static_assert(
      (is_owned<Args> && ...),
      "abandon_on_stop: an argument refers to something of somebody else's (a pointer, reference_wrapper, span "
      "or string_view), which may be gone before the call has ended: give it an object that owns it");
  owner_of_call call{*where, make_abandonable<T>(f, args...)};  // what that throws, the await does
  co_await blocking_wait{call};
  co_return call.take();
}

/// The process's own, made at its first use.
blocking_core& process_blocking_core();

/// A call that nobody waits for. Lives until it has run.
class unawaited_call {
 public:
  explicit unawaited_call(void (*call)(unawaited_call&) noexcept) noexcept : call_{call} {}
  unawaited_call(const unawaited_call&) = delete;
  void run() noexcept { call_(*this); }  // it may be gone

  unawaited_call* next = nullptr;

 protected:
  ~unawaited_call() = default;

 private:
  void (*call_)(unawaited_call&) noexcept;
};
/// Has a thread of the process's own pool run it, any thread. False: there is none for it, and it stays the caller's.
bool run_unawaited(unawaited_call& one) noexcept;

template <class F, class... Args>
using blocking_result = kept_result<std::decay_t<F>, std::decay_t<Args>...>;

}  // namespace weft::detail

// Shared tasks: one task that several await. It is a root of its own. The first that awaits it starts it, on the executor and
// by the clock of that task. It runs once, and all get the same result.
//
// It runs only as long as somebody waits for it: when the last waiter is stopped, that stops the shared task and waits until it
// has ended, so that what the task refers to is still there while it runs.
#pragma once

#include <type_traits>
#include <utility>
#include <weft/detail/task/shared_root.hpp>
#include <weft/task.hpp>

namespace weft {

template <class T>
class future;

/// A task whose result several can have; all copies refer to the same task. `co_await s` gives a `const T&` to the value, which
/// lives as long as any copy does (void gives void, a reference the reference). It is lazy: the first that awaits it starts it.
/// A function that awaits it, such as sync_wait or when_all, gives the same for one that has a name; for a temporary, which
/// ends with the call, it gives a copy of the value.
///
///     shared_task<config> settings = load();       // a coroutine, or made from a task<config>
///     const config& mine = co_await settings;
///
/// Suspends  until it has ended; not if it has.
/// Cancel    a waiter that is stopped leaves; the last one to leave stops the shared task and waits for its end.
/// Fails     every waiter gets the same exception; if the task ended stopped, so do they.
/// Threads   copies may be awaited on any thread, each copy on one at a time. The task runs on the executor of the first that
///           awaits it. Started by a sync_wait, which may leave before the others, it resumes wherever what it waits for
///           completes.
/// Cost      one allocation beside the frame.
template <class T = void>
class WEFT_TO_BE_AWAITED("a shared task does nothing until it is awaited") shared_task : public detail::knows_roots {
 public:
  using promise_type = detail::shared_promise<T>;
  using value_type = T;

  shared_task() noexcept = default;  ///< empty; must not be awaited
  shared_task(task<T> from) : shared_task{detail::task_access::release(std::move(from))} {}
  shared_task(const shared_task& other) noexcept : state_{other.state_} {
    if (state_ != nullptr) state_->retain();
  }
  shared_task(shared_task&& other) noexcept : state_{std::exchange(other.state_, nullptr)} {}
  shared_task& operator=(shared_task other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }
  ~shared_task() {
    if (auto* mine = std::exchange(state_, nullptr); mine != nullptr && mine->release()) mine->destroy();
  }

  /// Whether there is a coroutine to await.
  explicit operator bool() const noexcept { return state_ != nullptr; }

  /// Whether it has ended. Does not wait.
  bool is_ready() const noexcept { return state_ != nullptr && state_->now() >= detail::shared_root::phase::ended; }

  auto operator co_await() const noexcept { return awaiter{*this}; }

 private:
  friend promise_type;
  friend future<T>;
  using state = detail::shared_state<T>;

  class awaiter : detail::waiter {
   public:
    explicit awaiter(shared_task of) noexcept : waiter{type}, of_{std::move(of)} {
      if (of_.state_ == nullptr) detail::fail_empty_task();
    }
    awaiter(const awaiter&) = delete;

    bool await_ready() const noexcept { return of_.state_->now() == detail::shared_root::phase::ended; }
    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> caller) noexcept {
      return of_.state_->wait(*this, detail::suspending(caller));
    }
    decltype(auto) await_resume() {
      detail::outcome<T>& result = of_.state_->result();
      if (result.is_exception()) detail::rethrow(result.exception());
      if constexpr (std::is_reference_v<T>)
        return static_cast<T>(*result.value());
      else if constexpr (!std::is_void_v<T>)
        return std::as_const(result.value());
    }

   private:
    static detail::on_stop leave(waiter& self) noexcept {
      auto& mine = static_cast<awaiter&>(self);
      return mine.of_.state_->leave(mine);
    }
    static void tell(const waiter& self, const char* what, detail::wait_subjects& into) noexcept {
      const detail::sleeper* const runs = static_cast<const awaiter&>(self).of_.state_;
      into.add(what, runs, runs);
    }
    static const detail::wait_layout seen;
    static constexpr detail::wait_type type{.leave = leave, .name = "shared_task", .tell = tell, .layout = &seen};

    shared_task of_;
  };

  explicit shared_task(std::coroutine_handle<detail::task_promise<T>> frame) {
    struct guard {
      std::coroutine_handle<> frame;
      ~guard() {
        if (frame) frame.destroy();
      }
    } unless_made{frame};
    state_ = new state{frame};
    unless_made.frame = nullptr;
  }

  state* state_ = nullptr;
};
WEFT_LAYOUT_IN(
    T, shared_task<T>::awaiter,
    stored_at(WEFT_BEHIND_WAITER(awaiter, of_) + offsetof(shared_task, state_), WEFT_ROOT_IN(state)).held_by_subject());

template <class T>
shared_task(task<T>) -> shared_task<T>;

template <class T>
shared_task<T> detail::shared_promise<T>::get_return_object() {
  return shared_task<T>{task<T>{task_promise<T>::get_return_object()}};
}

}  // namespace weft

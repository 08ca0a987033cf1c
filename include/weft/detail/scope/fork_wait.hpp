// What a handle of a fork refers to, and the wait for its end. Part of fork.hpp; the states are told in scope/scope_core.hpp.
#pragma once

#include <coroutine>
#include <cstdint>
#include <exception>
#include <optional>
#include <type_traits>
#include <utility>
#include <weft/detail/core/root.hpp>
#include <weft/detail/core/waiter.hpp>
#include <weft/detail/scope/scope_core.hpp>
#include <weft/fork_status.hpp>
#include <weft/task.hpp>

namespace weft::detail {

/// The word of a handle: see scope/scope_core.hpp.
class fork_word {
 public:
  explicit fork_word(std::uintptr_t word = 0) noexcept : word_{word} {}

  explicit operator bool() const noexcept { return word_ != 0; }
  bool has_record() const noexcept { return (word_ & 1) != 0; }
  /// Where it has one.
  fork_record& record() const noexcept { return *reinterpret_cast<fork_record*>(word_ - 1); }
  std::coroutine_handle<> frame() const noexcept {
    if (has_record()) [[unlikely]]
      return record().frame();
    return std::coroutine_handle<>::from_address(reinterpret_cast<void*>(word_));
  }
  std::uintptr_t value() const noexcept { return word_; }

 private:
  std::uintptr_t word_;
};

[[noreturn]] void fail_empty_fork() noexcept;
[[noreturn]] void fail_shared_fork() noexcept;

template <class T>
task_promise<T>& promise_of(fork_word of) noexcept {
  return std::coroutine_handle<task_promise<T>>::from_address(of.frame().address()).promise();
}

/// A handle is gone; `awaited`: by an await that has taken the value.
template <bool awaited = false>
inline void release(fork_word of) noexcept {
  if (!of) return;
  if (of.has_record()) [[unlikely]]
    awaited ? of.record().of().drop_awaited(of.record()) : of.record().of().drop(of.record());
  else
    std::coroutine_handle<>::from_address(reinterpret_cast<void*>(of.value())).destroy();
}

/// Waits for a fork to end. Most have, and then there is nothing of a wait but the word.
class fork_wait {
 public:
  explicit fork_wait(fork_word of) noexcept : of_{of} {
    if (!of_) [[unlikely]]
      fail_empty_fork();
  }
  fork_wait(const fork_wait&) = delete;

  bool await_ready() const noexcept {
    if (!of_.has_record()) [[likely]]
      return true;
    fork_record& one = of_.record();
    return has_result(one) || (one.of().take_back(one) && has_result(one));
  }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> caller) noexcept {
    return suspend(suspending(caller));
  }

 protected:
  fork_word of_;

 private:
  static bool has_result(const fork_record& of) noexcept {
    const fork_status seen = of.status();
    return seen == fork_status::succeeded || seen == fork_status::failed;
  }

  class sleeping : public waiter {
   public:
    explicit sleeping(fork_record& what) noexcept : waiter{type}, of{what} {}
    static on_stop leave(waiter& self) noexcept;
    static void why(const waiter& self, cause_list& into) noexcept;
    static void tell(const waiter& self, const char* what, wait_subjects& into) noexcept {
      const sleeper& runs = static_cast<const sleeping&>(self).of;
      into.add(what, &runs, &runs);
    }
    static const wait_layout seen;
    static constexpr wait_type type{.leave = leave, .name = "fork", .tell = tell, .why = why, .layout = &seen};
    fork_record& of;
  };

  bool suspend(root& self) noexcept;

  std::optional<sleeping> in_line_;  // from suspend() on
};
WEFT_LAYOUT(fork_wait::sleeping,
            stored_at(WEFT_BEHIND_WAITER(sleeping, of), WEFT_ROOT_IN(fork_record)).held_by_subject());

/// `co_await std::move(f)`: moves the value out.
template <class T>
class fork_taker : public fork_wait {
 public:
  using fork_wait::fork_wait;
#if WEFT_DESTROYS_TEMPORARIES_TWICE
  WEFT_PER_AWAIT ~fork_taker() { release<true>(std::exchange(this->of_, fork_word{})); }
#else
  WEFT_PER_AWAIT ~fork_taker() { release<true>(this->of_); }
#endif

  T await_resume() {
    if (!this->of_.has_record()) [[likely]]
      return std::coroutine_handle<task_promise<T>>::from_address(reinterpret_cast<void*>(this->of_.value()))
          .promise()
          .take();
    fork_record& one = this->of_.record();
    task_promise<T>& promise = promise_of<T>(this->of_);
    if (one.status() == fork_status::failed) rethrow(promise.exception());  // others get it, too
    if (!one.of().is_only_holder(one)) fail_shared_fork();
    return promise.take();
  }
};

/// `co_await f`, of a fork that stays, or of a view.
template <class T, bool constant>
class fork_reader : public fork_wait {
 public:
  using fork_wait::fork_wait;

  decltype(auto) await_resume() {
    task_promise<T>& promise = promise_of<T>(this->of_);
    if (promise.is_exception()) rethrow(promise.exception());
    if constexpr (std::is_reference_v<T>)
      return static_cast<T>(*promise.value());
    else if constexpr (!std::is_void_v<T>)
      return static_cast<std::conditional_t<constant, const T&, T&>>(promise.value());
  }
};

}  // namespace weft::detail

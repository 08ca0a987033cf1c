// What the limits have in common in which coroutines wait for each other: one thread, and nothing is checked.
#pragma once

#include <coroutine>
#include <cstdlib>
#include <utility>

namespace handwritten {

/// Whom somebody woke, and who is to run when that one waits.
struct turns {
  std::coroutine_handle<> next;
  std::coroutine_handle<> go_on() noexcept { return next ? std::exchange(next, {}) : std::noop_coroutine(); }
};

/// Made suspended; resumed by its handle; its frame goes with it.
struct coroutine {
  struct promise_type {
    coroutine get_return_object() noexcept {
      return coroutine{std::coroutine_handle<promise_type>::from_promise(*this)};
    }
    std::suspend_always initial_suspend() const noexcept { return {}; }
    std::suspend_always final_suspend() const noexcept { return {}; }
    void return_void() const noexcept {}
    void unhandled_exception() const noexcept { std::abort(); }
  };
  explicit coroutine(std::coroutine_handle<promise_type> of) noexcept : self{of} {}
  coroutine(coroutine&& other) noexcept : self{std::exchange(other.self, {})} {}
  coroutine& operator=(coroutine&&) = delete;
  ~coroutine() {
    if (self) self.destroy();
  }
  std::coroutine_handle<promise_type> self;
};

}  // namespace handwritten

// The limit of a fork: a coroutine that runs when it is made, here to its end. Its promise has a pointer to its root, who
// awaits it, and room for an exception; whoever awaits it finds that it has ended. No list of forks, stop, env, async stack,
// views or statuses, and no thread but one.
#pragma once

#include "handwritten.hpp"

#include <coroutine>
#include <cstddef>
#include <exception>
#include <memory_resource>
#include <utility>

namespace handwritten {

/// Frames of forks, from one thread's cache.
struct cached_frames {
  static void* take(std::size_t bytes) { return frame_cache::take(bytes); }
  static void give(void* memory, std::size_t bytes) noexcept { frame_cache::give(memory, bytes); }
};

/// From a resource that was chosen for all that this thread makes now.
struct resource_frames {
  inline static constinit thread_local std::pmr::memory_resource* chosen = nullptr;
  static void* take(std::size_t bytes) { return chosen->allocate(bytes); }
  static void give(void* memory, std::size_t bytes) noexcept { chosen->deallocate(memory, bytes); }
};

template <class Frames>
class [[nodiscard]] fork {
 public:
  struct promise_type {
    root* owner;
    std::coroutine_handle<> continuation;
    std::exception_ptr failure;

    explicit promise_type(root& in) noexcept : owner{&in} {}

    fork get_return_object() noexcept {
      void* frame = handle::from_promise(*this).address();
      asm volatile("" : "+r"(frame));  // now clang can't tell whose frame is destroyed, and so makes one
      return fork{handle::from_address(frame)};
    }
    std::suspend_never initial_suspend() const noexcept { return {}; }
    auto final_suspend() const noexcept {
      struct awaiter {
        bool await_ready() const noexcept { return false; }
        std::coroutine_handle<> await_suspend(std::coroutine_handle<promise_type> self) const noexcept {
          const std::coroutine_handle<> next = self.promise().continuation;
          return next ? next : std::noop_coroutine();
        }
        void await_resume() const noexcept {}
      };
      return awaiter{};
    }
    void return_void() const noexcept {}
    [[gnu::cold, gnu::noinline]] void unhandled_exception() noexcept { failure = std::current_exception(); }

    static void* operator new(std::size_t bytes) { return Frames::take(bytes); }
    static void* operator new(std::size_t bytes, root&) { return Frames::take(bytes); }
    static void operator delete(void* memory, std::size_t bytes) noexcept { Frames::give(memory, bytes); }
  };

  using handle = std::coroutine_handle<promise_type>;

  fork(fork&& other) noexcept : frame_{std::exchange(other.frame_, nullptr)} {}
  fork& operator=(fork&&) = delete;
  ~fork() {
    if (frame_) frame_.destroy();
  }

  bool await_ready() const noexcept { return frame_.done(); }
  void await_suspend(std::coroutine_handle<> caller) const noexcept { frame_.promise().continuation = caller; }
  void await_resume() const {
    if (frame_.promise().failure) [[unlikely]]
      std::rethrow_exception(frame_.promise().failure);
  }

 private:
  explicit fork(handle frame) noexcept : frame_{frame} {}

  handle frame_;
};

/// So many forks of an empty coroutine, each awaited; how many have ended.
template <class Frames>
fork<Frames> empty_fork(root&) {
  co_return;
}
template <class Frames>
task<std::size_t> awaited_forks(std::size_t count) {
  root owner;
  std::size_t ended = 0;
  for (; ended != count; ++ended) co_await empty_fork<Frames>(owner);
  co_return ended;
}
/// The same, awaited by nobody.
template <class Frames>
std::size_t dropped_forks(std::size_t count) {
  root owner;
  std::size_t made = 0;
  for (; made != count; ++made) static_cast<void>(empty_fork<Frames>(owner));
  return made;
}

}  // namespace handwritten

// The limit: the least that a task can be and still be able to do weft's work. A promise holds a continuation, a pointer
// to its root, and room for a value or an exception; a frame that clang can't elide comes from a cache that one thread
// owns. No stop, no env, no async stack, no thread but one.
#pragma once

#include <array>
#include <coroutine>
#include <cstddef>
#include <cstdlib>
#include <exception>
#include <memory>
#include <new>
#include <utility>

#if __has_cpp_attribute(clang::coro_await_elidable)
#define BENCH_AWAIT_ELIDABLE [[clang::coro_await_elidable]]
#else
#define BENCH_AWAIT_ELIDABLE
#endif

namespace handwritten {

/// Frames by size class: the last one freed is the next one given, else the next piece of a slab. Nothing goes back.
class frame_cache {
 public:
  static void* take(std::size_t bytes) {
    const std::size_t size_class = (bytes + grain - 1) / grain;
    if (size_class >= classes) return ::operator new(bytes);
    if (frame* last = free_[size_class]) {
      free_[size_class] = last->next;
      return last;
    }
    return carve(size_class * grain);
  }

  static void give(void* memory, std::size_t bytes) noexcept {
    const std::size_t size_class = (bytes + grain - 1) / grain;
    if (size_class >= classes) return ::operator delete(memory, bytes);
    free_[size_class] = ::new (memory) frame{free_[size_class]};
  }

 private:
  struct frame {
    frame* next;
  };
  static constexpr std::size_t grain = 32;
  static constexpr std::size_t classes = 128;
  static constexpr std::size_t slab_bytes = 256 * 1024;

  [[gnu::noinline]] static void* carve(std::size_t bytes) {
    if (static_cast<std::size_t>(slab_end_ - slab_) < bytes) {
      slab_ = static_cast<std::byte*>(::operator new(slab_bytes));
      slab_end_ = slab_ + slab_bytes;
    }
    return std::exchange(slab_, slab_ + bytes);
  }

  inline static constinit thread_local std::array<frame*, classes> free_{};
  inline static constinit thread_local std::byte* slab_ = nullptr;
  inline static constinit thread_local std::byte* slab_end_ = nullptr;
};

/// What a chain of awaits belongs to. A real one is scheduled and stopped; this one is only pointed to.
struct root {
  const void* env = nullptr;
};

/// The part of a promise that awaiting needs.
struct promise_base {
  std::coroutine_handle<> continuation;
  root* owner = nullptr;

  struct final_awaiter {
    bool await_ready() const noexcept { return false; }
    template <class Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> self) const noexcept {
      return self.promise().continuation;
    }
    void await_resume() const noexcept {}
  };

  std::suspend_always initial_suspend() const noexcept { return {}; }
  final_awaiter final_suspend() const noexcept { return {}; }

  static void* operator new(std::size_t bytes) { return frame_cache::take(bytes); }
  static void operator delete(void* memory, std::size_t bytes) noexcept { frame_cache::give(memory, bytes); }
};

/// A lazy task, awaited once as an rvalue.
template <class T>
class [[nodiscard]] BENCH_AWAIT_ELIDABLE task {
 public:
  struct promise_type : promise_base {
    enum class outcome : unsigned char { none, value, failure };

    promise_type() noexcept {}
    ~promise_type() {
      if (has == outcome::value) std::destroy_at(&value);
      if (has == outcome::failure) std::destroy_at(&failure);
    }

    task get_return_object() noexcept { return task{handle::from_promise(*this)}; }

    void return_value(T result) {
      std::construct_at(&value, std::move(result));
      has = outcome::value;
    }

    void unhandled_exception() noexcept {
      std::construct_at(&failure, std::current_exception());
      has = outcome::failure;
    }

    T take() {
      if (has == outcome::failure) [[unlikely]]
        rethrow();
      return std::move(value);
    }

    [[noreturn, gnu::noinline]] void rethrow() const { std::rethrow_exception(failure); }

    union {
      T value;
      std::exception_ptr failure;
    };
    outcome has = outcome::none;
  };

  using handle = std::coroutine_handle<promise_type>;

  task(task&& other) noexcept : frame_{std::exchange(other.frame_, nullptr)} {}
  task& operator=(task&&) = delete;
  ~task() {
    if (frame_) frame_.destroy();
  }

  auto operator co_await() && noexcept { return awaiter{frame_}; }

  /// Runs on the calling thread until the task suspends or ends; `then` is resumed at its end.
  void start(root& owner, std::coroutine_handle<> then) const {
    frame_.promise().owner = &owner;
    frame_.promise().continuation = then;
    frame_.resume();
  }

  /// The result of a task that has ended.
  T take() const { return frame_.promise().take(); }

 private:
  struct awaiter {
    handle callee;

    bool await_ready() const noexcept { return false; }
    template <class Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> caller) const noexcept {
      callee.promise().continuation = caller;
      callee.promise().owner = caller.promise().owner;
      return callee;
    }
    T await_resume() const { return callee.promise().take(); }
  };

  explicit task(handle frame) noexcept : frame_{frame} {}

  handle frame_;
};

/// Runs a task that never waits for another thread.
template <class T>
T run(task<T> work) {
  root owner;
  work.start(owner, std::noop_coroutine());
  return work.take();
}

}  // namespace handwritten

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

/// A lazy task, awaited once as an rvalue. It has no coro_await_elidable: clang elides it anyway where it sees enough, into
/// smaller frames (8.7 ns a level of `chain`, with the attribute 11.7).
template <class T, bool MayElide>
class [[nodiscard]] basic_task {
 public:
  struct promise_type : promise_base {
    enum class outcome : unsigned char { none, value, failure };

    promise_type() noexcept {}
    ~promise_type() {
      if (has == outcome::value) std::destroy_at(&value);
      if (has == outcome::failure) [[unlikely]]
        forget();
    }

    basic_task get_return_object() noexcept {
      void* frame = handle::from_promise(*this).address();
      if constexpr (!MayElide) asm volatile("" : "+r"(frame));  // now clang can't tell whose frame is destroyed
      return basic_task{handle::from_address(frame)};
    }

    void return_value(T result) {
      std::construct_at(&value, std::move(result));
      has = outcome::value;
    }

    T take() {
      if (has == outcome::failure) [[unlikely]]
        rethrow();
      return std::move(value);
    }

    // What only a failure needs stands out of line: a thousand hot levels have to share the instruction cache.
    [[gnu::cold, gnu::noinline]] void unhandled_exception() noexcept {
      std::construct_at(&failure, std::current_exception());
      has = outcome::failure;
    }
    [[gnu::cold, gnu::noinline]] void forget() noexcept { std::destroy_at(&failure); }
    [[noreturn, gnu::cold, gnu::noinline]] void rethrow() const { std::rethrow_exception(failure); }

    union {
      T value;
      std::exception_ptr failure;
    };
    outcome has = outcome::none;
  };

  using handle = std::coroutine_handle<promise_type>;

  basic_task(basic_task&& other) noexcept : frame_{std::exchange(other.frame_, nullptr)} {}
  basic_task& operator=(basic_task&&) = delete;
  ~basic_task() {
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

  explicit basic_task(handle frame) noexcept : frame_{frame} {}

  handle frame_;
};

template <class T>
using task = basic_task<T, true>;

/// Always in a frame of its own, from the cache.
template <class T>
using framed_task = basic_task<T, false>;

/// Runs a task that never waits for another thread.
template <class T, bool MayElide>
T run(basic_task<T, MayElide> work) {
  root owner;
  work.start(owner, std::noop_coroutine());
  return work.take();
}

}  // namespace handwritten

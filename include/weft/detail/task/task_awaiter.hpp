// A task's promise, and its await: a call into the same root. Part of task.hpp.
#pragma once

#include <coroutine>
#include <cstdint>
#include <exception>
#include <type_traits>
#include <utility>
#include <weft/detail/core/async_stack.hpp>
#include <weft/detail/core/root.hpp>
#include <weft/detail/task/outcome.hpp>

namespace weft {
template <class T>
class task;
}  // namespace weft

namespace weft::detail {

struct task_access;

/// Ends the program: a task that has no coroutine was awaited.
[[noreturn]] void fail_empty_task() noexcept;

/// Where a callee has failed: destroys its frame, also one that has ended where it waited, and throws what is in `failure`.
[[noreturn]] void destroy_and_rethrow(std::coroutine_handle<> callee, std::exception_ptr& failure);

template <class T>
class task_promise_base : public awaiting_promise, public outcome<T>, public initial_awaiter<task_promise_base<T>> {
 public:
  task_promise_base() noexcept { this->set_trivial(std::is_trivially_destructible_v<stored<T>>); }

  // The coroutine's arguments, to learn about their types. A reference looks like a value here, so those count as
  // values of what they refer to: at worst a destructor is called that does nothing. A frame from a resource must go
  // back there, even if the resource has its memory from the caller's frame.
  template <class... Args>
  explicit task_promise_base(Args&...) noexcept {
    this->set_trivial(
        std::is_trivially_destructible_v<stored<T>> &&
        ((std::is_trivially_destructible_v<Args> && !std::is_same_v<const Args, const std::allocator_arg_t>) && ...));
  }

  final_awaiter final_suspend() const noexcept { return {}; }
  [[gnu::noinline]] void unhandled_exception() noexcept { this->set_exception(exception_leaving(*this)); }

  bool needs_no_destructor() const noexcept { return this->is_trivial(); }
};

template <class T>
class task_promise : public task_promise_base<T> {
 public:
  using task_promise_base<T>::task_promise_base;
  task<T> get_return_object() noexcept;

  template <class U = T>
    requires std::is_constructible_v<T, U>
  void return_value(U&& value) noexcept(std::is_nothrow_constructible_v<T, U>) {
    this->set_value(std::forward<U>(value));
  }
};
template <class T>
class task_promise<T&> : public task_promise_base<T&> {
 public:
  using task_promise_base<T&>::task_promise_base;
  task<T&> get_return_object() noexcept;

  void return_value(T& value) noexcept { this->set_value(value); }
  void return_value(const T&& temporary) = delete;  // it would be gone before anybody sees it
};
template <>
class task_promise<void> : public task_promise_base<void> {
 public:
  using task_promise_base<void>::task_promise_base;
  task<void> get_return_object() noexcept;

  void return_void() noexcept { this->set_value(nothing{}); }
};

/// What a task holds, and `co_await` of it: a call into the same root. The awaiter is the task itself, so an await adds one
/// word to the caller's frame. Each await destroys its callee by an indirect call of its own, since one call that all awaits
/// share, in a function, is mispredicted each time (chain_opaque: 67 -> 18 ns a level for both).
template <class T>
class task_awaiter {
  using callee = std::coroutine_handle<task_promise<T>>;

 public:
  bool await_ready() const noexcept { return false; }

  template <class Promise>
  WEFT_PER_AWAIT std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> caller) noexcept {
    if (is_empty()) [[unlikely]]
      fail_empty_task();
    const callee frame = callee::from_address(reinterpret_cast<void*>(word_));
    root& self = *caller.promise().owner;
    enter_root(self, frame, caller);
#if WEFT_HAS_ELISION
    // A callee in the caller's frame lies between its begin and this awaiter. Asked at compile time only: where frames
    // are not elided, the question would be as long as the rest.
    const auto *begin = static_cast<char*>(caller.address()), *at = static_cast<char*>(frame.address());
    const bool in_place = begin < at && at < reinterpret_cast<char*>(this);
    if (__builtin_constant_p(in_place) && in_place && frame.promise().needs_no_destructor())
      word_ = reinterpret_cast<std::uintptr_t>(at) + (nothing_to_destroy | awaited);
    else
      word_ = reinterpret_cast<std::uintptr_t>(at) + awaited;
#endif
    return transfer(self, frame);
  }

  WEFT_PER_AWAIT T await_resume() {
#if WEFT_HAS_ELISION
    __builtin_assume((word_ & awaited) != 0);
    const callee frame = callee::from_address(reinterpret_cast<void*>((word_ - awaited) & ~nothing_to_destroy));
#else
    const callee frame = callee::from_address(reinterpret_cast<void*>(word_));
    frame.promise().owner->top = frame.promise().continuation;
    word_ += returned;
#endif
    if (!frame.promise().has_value()) [[unlikely]] {
      word_ |= nothing_to_destroy;
      rethrow_of(word_);
    }
    return frame.promise().take_value();
  }

  task_awaiter() noexcept = default;
  explicit task_awaiter(callee frame) noexcept : word_{reinterpret_cast<std::uintptr_t>(frame.address())} {}
  task_awaiter(task_awaiter&& other) noexcept : word_{std::exchange(other.word_, nothing_to_destroy)} {}
  task_awaiter& operator=(task_awaiter&& other) noexcept {
    std::swap(word_, other.word_);
    return *this;
  }
  WEFT_PER_AWAIT ~task_awaiter() {
    const std::uintptr_t word = word_;
    if ((word & nothing_to_destroy) != 0) return;
#if WEFT_DESTROYS_TEMPORARIES_TWICE
    word_ = nothing_to_destroy;
#endif
    const callee frame = callee::from_address(reinterpret_cast<void*>(word & ~(awaited | returned)));
    if (!has_ended(word)) {
      destroy_frame(frame);
      return;
    }
#if WEFT_HAS_ELISION
    const promise_base& promise = frame.promise();
    promise.owner->top = promise.continuation;
#endif
    frame.destroy();
  }

  /// Whether there is nothing to await, or no longer.
  bool is_empty() const noexcept { return (word_ & (nothing_to_destroy | awaited | returned)) != 0; }
  callee release() noexcept {
    return callee::from_address(reinterpret_cast<void*>(std::exchange(word_, nothing_to_destroy)));
  }

 private:
  // Not inlined, since it would be in each await, where bytes may cost more than instructions: of a long chain of functions that
  // are six lines of the cache apart, half of the lines are never used. 15.5 instead of 7.9 ns a level, on one of two EPYCs.
  [[noreturn, gnu::noinline]] static void rethrow_of(std::uintptr_t word) {
    const callee frame =
        callee::from_address(reinterpret_cast<void*>(word & ~(nothing_to_destroy | awaited | returned)));
    destroy_and_rethrow(frame, frame.promise().exception());
  }

  // The address of the callee's frame and three bits, in one word. One word, since in a large frame an awaiter lies far from
  // the frame's begin, and each access costs seven bytes of code or more. Where a program has objects of both compilers, the
  // linker may keep either's destructor, so each bit has one meaning and each destructor accepts each word.
  //
  //   nothing_to_destroy  the task is empty, or its frame lies in the caller's and needs no destructor, or has gone
  //   awaited             it was awaited: set where frames are elided
  //   returned            its await has returned: set where they are not
  static constexpr std::uintptr_t nothing_to_destroy = 1, awaited = 2, returned = 4;

  // Whether the destructor knows that the await has returned, in the root that runs: else a stop may have destroyed the
  // frame. clang does where it has seen await_resume(), and so needs no store between return and use.
  WEFT_PER_AWAIT static bool has_ended(std::uintptr_t word) noexcept {
#if WEFT_HAS_ELISION
    return __builtin_constant_p(word & awaited) && (word & awaited) != 0;
#else
    return (word & returned) != 0;
#endif
  }

  std::uintptr_t word_ = nothing_to_destroy;
};

#if WEFT_COPIES_AWAITERS
template <class T>
class in_place_awaiter {
 public:
  explicit in_place_awaiter(task_awaiter<T>& task) noexcept : task_{task} {}
  bool await_ready() const noexcept { return false; }
  template <class Promise>
  WEFT_PER_AWAIT std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> caller) noexcept {
    return task_.await_suspend(caller);
  }
  WEFT_PER_AWAIT T await_resume() { return task_.await_resume(); }

 private:
  task_awaiter<T>& task_;
};
#else
template <class T>
using in_place_awaiter = task_awaiter<T>&;
#endif

template <class T>
void expect_task(const task_promise<T>&) noexcept {}
template <class Promise>
concept of_a_task = requires(Promise& promise) { expect_task(promise); };

template <class T>
inline constexpr bool owns_callees<task<T>> = true;

struct task_access {
  template <class T>
  WEFT_COROUTINE_WRAPPER static task<T> make(std::coroutine_handle<task_promise<T>> frame) noexcept {
    return task<T>{frame};
  }
  template <class T>
  static std::coroutine_handle<task_promise<T>> release(task<T>&& from) noexcept {
    if (from.is_empty()) [[unlikely]]
      fail_empty_task();
    return from.release();
  }
  template <class T>
  static task_awaiter<T>& awaiter(task<T>& of) noexcept {
    return of;
  }
  /// The awaiter of the task that an awaitable has made and is awaited as.
  template <class T>
  static task_awaiter<T> take_awaiter(task<T>& of) noexcept {
    return task_awaiter<T>{std::move(awaiter(of))};
  }
};

/// Base of an awaitable that makes a task when it is awaited, and converts to one where a task is expected. `Self` has
/// as_task() &&, which makes it.
template <class Self, class T>
class task_inside : public knows_roots {
 public:
  using value_type = T;
  WEFT_COROUTINE_WRAPPER operator task<T>() && {
    return static_cast<Self&&>(*this).as_task();
  }  // NOLINT: stands for it
  task_awaiter<T> operator co_await() && {
    task<T> work = static_cast<Self&&>(*this).as_task();
    return task_access::take_awaiter(work);
  }
};

}  // namespace weft::detail

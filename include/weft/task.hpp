// Lazy tasks: the call that can wait.
//
// A task does nothing until it is awaited, then runs in the root of whoever awaits it: `co_await f()` costs about what
// a call of a function costs that the compiler does not inline. Where clang can see the callee, its frame is placed in
// the caller's; else it comes from the worker's frame memory. A task resumes on its own executor, whoever completed
// what it waited for.
//
// A task ends in one of three ways: with a value, with an exception (thrown at the await), or stopped. Stopped is no
// exception: the frames that wait for it are destroyed, innermost first, up to as_result, sync_wait or another
// boundary. Destructors run; `catch` does not.
//
// Invariants. A task's frame, and with it its arguments, is destroyed at the end of the expression that awaits it, also
// where the task has a name; one that nobody awaits goes with the task. A frame that lies in its caller's frame and has
// nothing to destroy is not destroyed at all: the await knows, at compile time, and saves a call (17.0 -> 12.4 ns a level
// in the prototype).
//
// Long because a task, its awaiter and its three ways to be run are one mechanism.
//
// Rejected: results in the awaiter, which would save 16 bytes of the frame; but a fork that has finished before anybody
// awaits it keeps its result in its frame.
#pragma once

#include <cstdint>
#include <exception>
#include <type_traits>
#include <utility>
#include <weft/detail/base/invoke.hpp>
#include <weft/detail/core/async_stack.hpp>
#include <weft/detail/core/root.hpp>
#include <weft/error.hpp>

namespace weft {

template <class T>
class task;
template <class T>
class shared_task;

namespace detail {

template <class T>
class task_promise;
template <class T>
class task_awaiter;
struct task_access;

/// Ends the program: a task that has no coroutine was awaited.
[[noreturn]] void fail_empty_task() noexcept;

/// Where a callee has failed: destroys its frame, also one that has ended where it waited, and throws what is in `failure`.
[[noreturn]] void destroy_and_rethrow(std::coroutine_handle<> callee, std::exception_ptr& failure);

/// How a coroutine ended, and with what. Aligned to 16 at most, so that promise_base::of holds: a value that wants more
/// is aligned by hand within its room. That of void is one word: an exception_ptr, or a number that no pointer is.
template <class T>
class outcome {
  using stored = detail::stored<T>;
  static constexpr bool overaligned = alignof(stored) > 16;
  static constexpr bool is_one_word = std::is_void_v<T>;

 public:
  outcome() noexcept {
    if constexpr (is_one_word) word_ = 0;
  }
  outcome(const outcome&) = delete;
  ~outcome() {
    if (is_exception()) [[unlikely]]
      exception_.~exception_ptr();
    else if constexpr (!std::is_trivially_destructible_v<stored>)
      if (how() == state::value) value().~stored();
  }

  template <class U>
  void set_value(U&& from) noexcept(std::is_nothrow_constructible_v<stored, U>) {
    if constexpr (std::is_reference_v<T>)
      ::new (place()) stored(__builtin_addressof(from));
    else if constexpr (!is_one_word)
      ::new (place()) stored(std::forward<U>(from));
    become(state::value);
  }
  void set_exception(std::exception_ptr failure) noexcept {
    if constexpr (!std::is_trivially_destructible_v<stored>)
      if (how() == state::value) value().~stored();  // a local's destructor threw after the co_return
    ::new (static_cast<void*>(__builtin_addressof(exception_))) std::exception_ptr(std::move(failure));
    if constexpr (!is_one_word) become(state::exception);
  }

  /// Moves over what `other` holds, which is not empty; an exception thrown by that is what this holds then.
  void take_from(outcome& other) noexcept {
    if (other.is_exception()) return set_exception(std::move(other.exception_));
    if constexpr (is_one_word) {
      become(state::value);
    } else if constexpr (std::is_nothrow_move_constructible_v<stored>) {
      ::new (place()) stored(std::move(other.value()));
      become(state::value);
    } else {
      try {
        ::new (place()) stored(std::move(other.value()));
        become(state::value);
      } catch (...) {
        set_exception(std::current_exception());
      }
    }
  }

  bool is_empty() const noexcept { return how() == state::empty; }
  bool is_exception() const noexcept { return how() == state::exception; }
  const std::exception_ptr& exception() const noexcept { return exception_; }

  stored& value() noexcept {
    if constexpr (is_one_word) {
      static constinit nothing one_for_all;
      return one_for_all;
    } else {
      return *std::launder(static_cast<stored*>(place()));
    }
  }

  bool has_value() const noexcept { return how() == state::value; }
  std::exception_ptr& exception() noexcept { return exception_; }

  /// Moves the value out, or throws what is there instead.
  T take() {
    if (!has_value()) [[unlikely]]
      rethrow(std::move(exception_));
    return take_value();
  }
  /// The value, which is there.
  T take_value() {
    if constexpr (std::is_reference_v<T>)
      return static_cast<T>(*value());
    else if constexpr (!std::is_void_v<T>)
      return std::move(value());
  }
  /// The same as a result, which can hold either; what moving the value throws is an exception, too.
  result<T> take_result() noexcept {
    if (how() != state::value) return result<T>{exception_};
    if constexpr (std::is_reference_v<T>) {
      return result<T>{std::in_place, *value()};
    } else if constexpr (std::is_nothrow_move_constructible_v<stored>) {
      return result<T>{std::in_place, std::move(value())};
    } else {
      try {
        return result<T>{std::in_place, std::move(value())};
      } catch (...) {
        return result<T>{std::current_exception()};
      }
    }
  }

 protected:
  // A bit of the coroutine's, not of its outcome; it is kept here because there is room, until there is an outcome.
  void set_trivial(bool on) noexcept {
    if constexpr (is_one_word)
      word_ = on ? trivial_and_empty : 0;
    else
      marks_.trivial = on;
  }
  bool is_trivial() const noexcept {
    if constexpr (is_one_word)
      return word_ == trivial_and_empty;
    else
      return marks_.trivial;
  }

 private:
  enum class state : unsigned char { empty, value, exception };
  static constexpr std::uintptr_t is_value = 1,
                                  trivial_and_empty = 2;  // what one word is beside 0 and an exception_ptr

  struct marks {
    state how = state::empty;
    bool trivial = false;
  };
  struct no_marks {};

  state how() const noexcept {
    if constexpr (is_one_word)
      return word_ == is_value ? state::value : (word_ & ~trivial_and_empty) == 0 ? state::empty : state::exception;
    else
      return marks_.how;
  }
  void become(state how) noexcept {
    if constexpr (is_one_word)
      word_ = is_value;
    else
      marks_.how = how;
  }

  void* place() noexcept {
    if constexpr (overaligned) {
      const auto address = reinterpret_cast<std::uintptr_t>(room_);
      return reinterpret_cast<void*>((address + alignof(stored) - 1) & ~(std::uintptr_t{alignof(stored)} - 1));
    } else {
      return room_;
    }
  }

  union {
    alignas(overaligned ? 16
                        : alignof(stored)) std::byte room_[sizeof(stored) + (overaligned ? alignof(stored) - 16 : 0)];
    std::exception_ptr exception_;
    std::uintptr_t word_;
  };
  [[no_unique_address]] std::conditional_t<is_one_word, no_marks, marks> marks_;
};

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

/// What a task holds, and `co_await` of it: a call into the same root. The awaiter is the task itself, so an await adds
/// one word to the caller's frame; and each await destroys its callee by a call of its own, since one call for all,
/// behind a function, is mispredicted each time (chain_opaque: 67 -> 18 ns a level for both).
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
      word_ = nothing_to_destroy;
      destroy_and_rethrow(frame, frame.promise().exception());
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
  // The callee's frame and three bits, in one word, since what an await touches in a large frame lies far from its begin,
  // and each access costs seven bytes of code or more. Where a program has objects of both compilers, the destructor that
  // is kept may be either's; so each bit means one thing, and each destructor can do with each word.
  //
  //   nothing_to_destroy  the task is empty, or its frame lies in the caller's and needs no destructor
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

}  // namespace detail

/// A coroutine that runs when it is awaited.
///
///     task<int> answer() { co_return 42; }
///     task<> ask() { std::print("{}", co_await answer()); }
///
/// T is void, a reference, or any type that can be moved. Move-only; awaited once, as an rvalue: `co_await f()` or
/// `co_await std::move(t)`. A task that is dropped unawaited never ran, which compilers warn about.
///
/// Cancel    a stop of its root ends it at its next await that waits.
/// Fails     what its body throws is thrown at the await. std::bad_alloc where it is called, if there is no frame.
/// Lifetime  its locals go when its body ends; its arguments, as those of any function, at the end of the expression that
///           awaits it, also where the task has a name. So a reference or a view that it gives may refer to an argument
///           until then, and not later.
/// Memory    its caller's frame, the worker's frame memory, or after a std::allocator_arg the resource that follows.
/// Cost      some 8 ns to await, and a return; no allocation where clang elides, else one cached block.
template <class T = void>
class [[nodiscard("a task does nothing until it is awaited")]] WEFT_ELIDABLE WEFT_COROUTINE_TYPE task
    : detail::task_awaiter<T> {
  static_assert(!std::is_rvalue_reference_v<T>, "a task can't return an rvalue reference: return a value");

 public:
  using promise_type = detail::task_promise<T>;
  using value_type = T;

  task() noexcept = default;  ///< empty: not to be awaited
  task(task&&) noexcept = default;
  task& operator=(task&&) noexcept = default;
  WEFT_PER_AWAIT ~task() = default;

  /// Whether there is a coroutine to await.
  explicit operator bool() const noexcept { return !this->is_empty(); }

 private:
  friend promise_type;
  friend detail::task_access;

  explicit task(std::coroutine_handle<promise_type> frame) noexcept : detail::task_awaiter<T>{frame} {}
};

namespace detail {

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
};

template <class T>
inline task<T> task_promise<T>::get_return_object() noexcept {
  return task_access::make<T>(std::coroutine_handle<task_promise>::from_promise(*this));
}
template <class T>
inline task<T&> task_promise<T&>::get_return_object() noexcept {
  return task_access::make<T&>(std::coroutine_handle<task_promise>::from_promise(*this));
}
inline task<void> task_promise<void>::get_return_object() noexcept {
  return task_access::make<void>(std::coroutine_handle<task_promise>::from_promise(*this));
}

}  // namespace detail

template <class T>
detail::in_place_awaiter<T> awaiter_in_root(task<T>&& callee) noexcept {
  return static_cast<detail::in_place_awaiter<T>>(detail::task_access::awaiter(callee));
}
template <class T>
void awaiter_in_root(task<T>&) noexcept {
  static_assert(!sizeof(T*), "a task is awaited once, as an rvalue: co_await std::move(t)");
}

// ---- any awaitable as a task ------------------------------------------------------------------------------------------------

namespace detail {

template <class T>
inline constexpr bool is_task = false;
template <class T>
inline constexpr bool is_task<task<T>> = true;

/// Whether awaiting it gives a reference to a value that lives as long as it does: a shared_task, a fork_view.
template <class Awaitable>
inline constexpr bool keeps_its_value = false;
template <class T>
inline constexpr bool keeps_its_value<shared_task<T>> = true;

/// What awaiting it in a task gives, where that task is what keeps it: nothing that refers to it, since it goes with the
/// task's frame. So one that keeps its value gives a copy (others may have the value, too), and an xvalue is moved out.
/// What is given as an lvalue, `Awaitable&`, stays, and gives what it gives.
template <class Awaitable>
struct awaited {
  using given = await_result_t<Awaitable>;
  using type = std::conditional_t<std::is_rvalue_reference_v<given>, std::remove_reference_t<given>, given>;
};
template <class T>
struct awaited<task<T>> {  // which has no awaiter outside of a task
  using type = T;
};
template <class Awaitable>
  requires keeps_its_value<Awaitable>
struct awaited<Awaitable> {
  using type = typename Awaitable::value_type;
  static_assert(
      std::is_void_v<type> || std::is_reference_v<type> || std::is_copy_constructible_v<type>,
      "the value of a temporary shared_task or fork_view is copied, since others may have it, too, and this one "
      "can't be copied: give the shared_task or the view a name, and pass that");
};

template <class Awaitable>
task<typename awaited<Awaitable>::type> await_in_task(Awaitable awaitable) {
  co_return co_await std::forward<Awaitable>(awaitable);
}
template <class Awaitable>
task<typename awaited<Awaitable&>::type> await_in_task_by_reference(Awaitable& awaitable) {
  co_return co_await awaitable;
}

/// A task as it is; any other awaitable inside one.
template <class Awaitable>
WEFT_COROUTINE_WRAPPER auto as_task(Awaitable&& awaitable) {
  using plain = std::remove_cvref_t<Awaitable>;
  static_assert(!(is_task<plain> && std::is_lvalue_reference_v<Awaitable>),
                "a task is awaited once, as an rvalue: pass std::move(t)");
  if constexpr (is_task<plain>)
    return std::forward<Awaitable>(awaitable);
  else if constexpr (std::is_lvalue_reference_v<Awaitable>)
    return await_in_task_by_reference<std::remove_reference_t<Awaitable>>(awaitable);
  else
    return await_in_task<plain>(std::forward<Awaitable>(awaitable));
}

template <class Awaitable>
using task_of = decltype(as_task(std::declval<Awaitable>()));

/// Destroys a task's frame at the end of the block that ran it.
template <class T>
struct frame_guard {
  std::coroutine_handle<task_promise<T>> frame;
  ~frame_guard() {
    if (frame) frame.destroy();
  }
};

}  // namespace detail

/// Whatever `co_await` takes in a task.
template <class Awaitable>
concept awaitable = detail::is_task<std::remove_cvref_t<Awaitable>> || detail::awaitable<Awaitable>;

/// What a function that awaits it gives on: sync_wait, as_result, when_all and all others. Of an lvalue, what `co_await` of
/// it gives; of an rvalue, which ends with that function, nothing that refers to it: of a shared_task<T> a T.
template <awaitable Awaitable>
using await_result = typename detail::task_of<Awaitable>::value_type;

// ---- sync_wait ----------------------------------------------------------------------------------------------------------------

/// Runs an awaitable on the calling thread, and blocks it until that has ended. While the task waits, the thread sleeps
/// on a futex; the task resumes on this thread.
///
/// Cancel    when `stop` is stopped, so is the task.
/// Fails     throws what the task threw, or `stopped` if it ended stopped. Called inside a task, where it would block a
///           worker, it ends the program with a sentence: co_await there.
template <awaitable Awaitable>
await_result<Awaitable> sync_wait(Awaitable&& awaitable, stop_token stop = {}) {
  using value_type = await_result<Awaitable>;
  detail::blocking_root root{stop};
  detail::frame_guard<value_type> ended{
      detail::task_access::release(detail::as_task(std::forward<Awaitable>(awaitable)))};
  root.adopt(ended.frame, ended.frame.promise());
  if (!root.run()) {
    ended.frame = nullptr;  // unwound
    detail::throw_stopped();
  }
  return ended.frame.promise().take();
}

// ---- as_result ----------------------------------------------------------------------------------------------------------------

namespace detail {

/// Awaits a task and gives its result, whichever it is: a boundary, at which a stop ends.
template <class T>
class [[nodiscard("as_result does nothing until it is awaited")]] WEFT_ELIDABLE as_result_awaiter : public knows_roots,
                                                                                                    boundary {
 public:
  explicit as_result_awaiter(task<T>&& callee) noexcept
      : boundary{go_on, stopped_here, nullptr, nullptr}, callee_{task_access::release(std::move(callee))} {}
  as_result_awaiter(as_result_awaiter&& other) noexcept  // before it is awaited
      : boundary{go_on, stopped_here, nullptr, nullptr}, callee_{std::exchange(other.callee_, nullptr)} {}
  ~as_result_awaiter() {
    if (callee_) destroy_frame(callee_);
  }

  bool await_ready() const noexcept { return false; }

  template <class Promise>
  WEFT_PER_AWAIT std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> caller) noexcept {
    root& self = *caller.promise().owner;
    continuation = caller;
    owner = &self;
    enter_root(self, callee_, handle());
    return transfer(self, callee_);
  }

  result<T> await_resume() noexcept {
    if (!callee_) return result<T>{stopped{}};
    frame_guard<T> ended{std::exchange(callee_, nullptr)};
    return ended.frame.promise().take_result();
  }

 private:
  static void stopped_here(boundary& self) noexcept {
    auto& mine = static_cast<as_result_awaiter&>(self);
    mine.callee_ = nullptr;  // unwound
    go_on(&mine);
  }

  std::coroutine_handle<task_promise<T>> callee_;
};

}  // namespace detail

/// Awaits, and gives what came of it as a `result<T>`: the value, the exception or the stop. Neither is thrown. Where the
/// whole root was told to stop, its next await stops again: a stop can be seen here, not swallowed.
///
/// Cost  that of an await.
///
///     result<int> r = co_await as_result(might_fail());
///     if (!r) log(r.error());
template <awaitable Awaitable>
auto as_result(WEFT_ELIDABLE_ARGUMENT Awaitable&& awaitable) {
  return detail::as_result_awaiter<await_result<Awaitable>>{detail::as_task(std::forward<Awaitable>(awaitable))};
}

// ---- start --------------------------------------------------------------------------------------------------------------------

namespace detail {

/// The root of a started task: owns everything, and ends with it.
template <class T, class Callback>
class started_root final : root {
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
    root* target;
    void operator()() const noexcept { target->request_stop(); }
  };

  started_root(executor* where, task<T>&& work, Callback&& callback, stop_token stop)
      : root{&own_env_, nullptr, ended},
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

}  // namespace detail

/// Starts a task, or whatever else can be awaited, from code that is no coroutine; `callback(result<T>)` is called once,
/// where it ends. The first form runs it here and at once, up to its first wait, and resumes it wherever what it waits for
/// completes; the second has `ex` run it from the beginning. What the task refers to must live until the callback; so must
/// an awaitable that is given as an lvalue.
///
/// Cancel    when `stop` is stopped, so is the task; the callback gets a stopped result.
/// Fails     std::bad_alloc, before anything has started. A value whose move throws is an exception in the result. The
///           callback must not throw: that ends the program, with a sentence.
/// Cost      one allocation; of what is no task, a frame more.
template <awaitable Awaitable, class Callback>
  requires std::is_invocable_v<Callback, result<await_result<Awaitable>>>
void start(Awaitable&& work, Callback callback, stop_token stop = {}) {
  detail::started_root<await_result<Awaitable>, Callback>::start(
      nullptr, detail::as_task(std::forward<Awaitable>(work)), std::move(callback), stop);
}
template <awaitable Awaitable, class Callback>
  requires std::is_invocable_v<Callback, result<await_result<Awaitable>>>
void start(executor& ex, Awaitable&& work, Callback callback, stop_token stop = {}) {
  detail::started_root<await_result<Awaitable>, Callback>::start(&ex, detail::as_task(std::forward<Awaitable>(work)),
                                                                 std::move(callback), stop);
}

}  // namespace weft

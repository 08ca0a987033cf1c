// What a coroutine is, whatever it passes and runs; and what passes through it. Part of coroutine.hpp.
//
// All of one lies at the top of its stack: context, state and the begin of its function on one line, right above its
// frames; then the rest of the function, and what a switch does not touch. With more coroutines than a cache has lines, each
// line more is a miss more. A value passes by its address, in a register: it stays where resume() or yield() got it until
// the other side has moved it out.
//
// resume and yield are inlined into what calls them, always: a function that switches and then returns has its return
// predicted by the other side's calls, and its frame is up to two lines more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <type_traits>
#include <utility>
#include <weft/detail/base/config.hpp>
#include <weft/detail/base/standard.hpp>
#include <weft/detail/context/context.hpp>
#include <weft/detail/stack/stack_header.hpp>
#include <weft/error.hpp>
#include <weft/stack_pool.hpp>

namespace weft { struct stack_options; }  // namespace weft

namespace weft::detail {

/// Throws what there is no stack for.
stack_header& stack_for(const stack_options& options, const stack_user& user);

template <class F>
stack_user user_of(const F& f) noexcept {
  const void* code = nullptr;
  if constexpr (std::is_pointer_v<F> && std::is_function_v<std::remove_pointer_t<F>>)
    code = reinterpret_cast<const void*>(f);
  return {__PRETTY_FUNCTION__, code};
}

/// What a coroutine is, whatever it passes and runs.
class alignas(64) coroutine_core {
 public:
  coroutine_core(const coroutine_core&) = delete;

  bool waits() const noexcept { return here_.mark == waiting; }
  bool has_ended() const noexcept { return here_.mark == ended; }

  /// Goes on inside, until that yields or ends; `passed` is what it gets. Returns what that passes.
  [[gnu::always_inline]] void* go_in(void* passed) noexcept { return go_in_as(running, passed); }

  /// Has what it waits in throw `failure`, and goes on inside.
  void* go_in_throwing(std::exception_ptr failure) noexcept;

  /// Goes back to whoever resumed it; `passed` is what that gets. Returns what the next one passes.
  [[gnu::always_inline]] void* go_out(void* passed) {
    if (here_.mark != running) [[unlikely]]
      refuse_to_yield();
    here_.mark = waiting;
    void* const got = exchange(here_, passed, rest().notes);
    if (here_.mark != running) [[unlikely]]
      return brought_in(got);
    return got;
  }

  /// By what runs in it, where no exception is handled or on its way: goes on in `other`, which waits, and whose resumer is
  /// its own from then on. There came_across() is called first, with this one. True: another one has come to this so; false:
  /// it was resumed.
  [[gnu::always_inline]] bool go_across(coroutine_core& other) {
    other.here_.mark = crossed;
    here_.mark = waiting;
#if WEFT_TSAN
    void* const its = std::exchange(other.rest().notes.fiber, rest().notes.fiber);
    rest().notes.fiber = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(its, 0);
#endif
    void* const got = jump_across(here_, other.here_, this);
    if (here_.mark == crossed) [[likely]] {
      here_.mark = running;
      came_across(*static_cast<coroutine_core*>(got));
      return true;
    }
    if (here_.mark != running) static_cast<void>(brought_in(got));
    return false;
  }

  /// By what runs in it: calls `call(argument)`, which throws nothing, on the stack of whoever resumed it, where all is
  /// warm. A call, and no switch: neither side is left.
  [[gnu::always_inline]] void call_outside(void (*call)(void*), void* argument) noexcept {
#if WEFT_ASAN || WEFT_TSAN
    call(argument);
#else
    call_on_top_of(static_cast<std::byte*>(here_.stack_pointer), call, argument);
#endif
  }

  /// By its function, before all else: throws if it was resumed for that.
  void begin() {
    if (here_.mark != running) [[unlikely]]
      static_cast<void>(brought_in(nullptr));
  }

  /// Has it call `answer(argument)`, on its stack, and wait on. It has begun, and waits.
  void ask(void (*answer)(void*) noexcept, void* argument) noexcept;

  /// While it runs: what its resumer has left.
  const context& left() const noexcept { return here_; }

  /// While it waits: the lowest address of its frames, and what is left of its stack below.
  const void* lowest_frame() const noexcept { return here_.stack_pointer; }
  std::size_t room_below() const noexcept {
    return static_cast<std::size_t>(static_cast<const std::byte*>(lowest_frame()) - on_.bottom);
  }

  /// What it threw; null: nothing.
  std::exception_ptr take_failure() noexcept { return std::move(rest().failure); }

  /// Unwinds its stack, if it has not ended, and gives it back. Nothing is left after this.
  void destroy() noexcept;

 protected:
  /// Calls the function with what the first resume passes, and destroys it. Returns what the last one gets.
  using start_function = void* (*)(coroutine_core&, void* passed);
  coroutine_core(stack_header& on, start_function start) noexcept;
  ~coroutine_core() = default;

 private:
  friend struct debug_fiber;
  friend void* place_on(stack_header& on, std::size_t bytes, std::size_t alignment) noexcept;

  enum : std::uint16_t { waiting, running, throwing, unwinding, asked, crossed, ended };

  // What it is to call on its stack first.
  struct question {
    void (*call)(void*) noexcept;
    void* argument;
  };

  // Right below the stack's header.
  struct away_from_the_line {
    start_function start;
    std::exception_ptr failure;
    context::notes notes;
  };

  away_from_the_line& rest() const noexcept { return *(reinterpret_cast<away_from_the_line*>(&on_) - 1); }

  [[gnu::always_inline]] void* go_in_as(std::uint16_t mark, void* passed) noexcept {
    if (!thread_is_ready()) [[unlikely]]
      prepare_thread_for_stacks();
    here_.mark = mark;
    return exchange(here_, passed, rest().notes);
  }

  static void start(void* self, void* passed) noexcept;
  // On the stack of the one that `before` went across to: from the end of this on, others may go on with that one.
  static void came_across(coroutine_core& before) noexcept;
  void* brought_in(void* passed);
  void refuse_to_yield();

  // The line that each switch touches; what derives from this begins on it.
  context here_;  // of the side that does not run; its mark is the state
  stack_header& on_;
};

/// Where on a stack there is room for so much, above what will be its frames.
inline void* place_on(stack_header& on, std::size_t bytes, std::size_t alignment) noexcept {
  return reinterpret_cast<void*>(
      (reinterpret_cast<std::uintptr_t>(&on) - sizeof(coroutine_core::away_from_the_line) - bytes) &
      ~(std::uintptr_t{alignment} - 1));
}

[[noreturn]] void fail_resume(const coroutine_core* what) noexcept;

template <class... Ins>
struct only {
  using type = void;
};
template <class In>
struct only<In> {
  using type = In;
};

template <class T>
using or_nothing = std::conditional_t<std::is_void_v<T>, nothing, T>;

/// The address of what is passed.
template <class T>
void* place_of(T& object) noexcept {
  return const_cast<void*>(static_cast<const volatile void*>(__builtin_addressof(object)));
}

/// What was passed as a T.
template <class T>
T passed_as(void* place) {
  if constexpr (std::is_reference_v<T>)
    return static_cast<T>(*static_cast<std::remove_reference_t<T>*>(place));
  else if constexpr (!std::is_void_v<T>)
    return std::move(*static_cast<T*>(place));
}

/// A stack, until the end of the block.
class borrowed_stack {
 public:
  borrowed_stack(const stack_options& options, const stack_user& user) : stack_{&stack_for(options, user)} {}
  borrowed_stack(const borrowed_stack&) = delete;
  ~borrowed_stack() {
    if (stack_ != nullptr) give_back_stack(*stack_);
  }
  stack_header& operator*() const noexcept { return *stack_; }
  stack_header& keep() noexcept { return *std::exchange(stack_, nullptr); }

 private:
  stack_header* stack_;
};

}  // namespace weft::detail

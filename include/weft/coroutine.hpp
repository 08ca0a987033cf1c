// Stackful coroutines, resumed by hand.
//
// All of one lies at the top of its stack: context, state and the begin of its function on one line, right above its
// frames; then the rest of the function, and what a switch does not touch. With more coroutines than a cache has lines, each
// line more is a miss more. A value passes by its address, in a register: it stays where resume() or yield() got it until
// the other side has moved it out.
//
// resume and yield are inlined into what calls them, always: a function that switches and then returns has its return
// predicted by the other side's calls, and its frame is up to two lines more.
//
// What ends a coroutine half-way is `stopped`, thrown out of the yield that it waits in, so its stack unwinds; swallowed,
// it is thrown again by the next yield.
//
// Long because the core, what passes through it and the class for users are inlined into one another.
#pragma once

#include <cstdint>
#include <exception>
#include <new>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <weft/detail/base/invoke.hpp>
#include <weft/detail/base/standard.hpp>
#include <weft/detail/context/context.hpp>
#include <weft/error.hpp>
#include <weft/stack_pool.hpp>

namespace weft {

template <class Signature>
class coroutine;

/// The stack that something runs on.
struct stack_options {
  /// Usable bytes, at least; fewer than least_stack_size are taken for that. Memory is taken as it is used.
  std::size_t size = std::size_t{64} << 10;
  stack_pool* pool = nullptr;  ///< null: the process's
  /// Instead of a pool's: one's own, which outlives what runs on it; least_stack_size or more beside a large function
  /// (asserted), and no guard.
  std::span<std::byte> memory = {};
  const char* name = nullptr;  ///< for messages; outlives what runs on it
};

namespace detail {

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

}  // namespace detail

/// A function with a stack of its own, which can be left in the middle and gone on with.
///
///     w::coroutine<int(int)> sum{[](auto& yield, int next) {
///       int all = 0;
///       while (next != 0) next = yield(all += next);
///       return all;
///     }};
///     sum.resume(1);  // 1
///     sum.resume(2);  // 3
///     sum.resume(0);  // 3, and done
///
/// The function gets a yielder and, unless In is void, what the first resume() was given. It returns what the last one
/// gives. Out and In are void, references, or types that can be moved. Move-only, while it does not run; empty after a move.
///
/// Fails     resume() throws what the function throws; then it is done. Where there is no stack: see stack_pool::take.
/// Lifetime  one that is destroyed half-way is gone on with once more: its yield throws `stopped`.
/// Threads   one at a time, not always the same.
/// Cost      no allocation on a warm stack; figures in docs/measurements/fibers.md.
template <class Out, class... Ins>
class coroutine<Out(Ins...)> {
  static_assert(sizeof...(Ins) <= 1, "a coroutine takes one value at a time: pass a struct or a tuple");
  using In = typename detail::only<Ins...>::type;

 public:
  /// What the function gives values out by: `In next = yield(out);`.
  ///
  /// Fails  throws what resume_throwing() brought, or `stopped` when the coroutine is destroyed, which is to pass: the next
  ///        yield throws it again. Called by anything but its own coroutine, it ends the program with a sentence.
  class yielder {
   public:
    yielder(const yielder&) = delete;
    [[gnu::always_inline]] In operator()(detail::or_nothing<Out> out)
      requires(!std::is_void_v<Out>)
    {
      return detail::passed_as<In>(core_.go_out(detail::place_of(out)));
    }
    [[gnu::always_inline]] In operator()()
      requires std::is_void_v<Out>
    {
      return detail::passed_as<In>(core_.go_out(nullptr));
    }

   private:
    friend coroutine;
    explicit yielder(detail::coroutine_core& core) noexcept : core_{core} {}
    detail::coroutine_core& core_;
  };

  coroutine() noexcept = default;  ///< empty: not to be resumed

  template <class F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, coroutine>) &&
            std::is_invocable_r_v<Out, std::decay_t<F>&, yielder&, Ins...>
  explicit coroutine(F&& f) : coroutine{stack_options{}, std::forward<F>(f)} {}

  template <class F>
    requires std::is_invocable_r_v<Out, std::decay_t<F>&, yielder&, Ins...>
  coroutine(stack_options options, F&& f) {
    using made = body<std::decay_t<F>>;
    constexpr std::size_t needed = sizeof(made) + alignof(made) + 64;  // the last for what lies away from the line
    if constexpr (needed > detail::free_above_stack) {
      WEFT_EXPECTS(options.memory.empty() || options.memory.size() >= needed + least_stack_size,
                   "a coroutine's function has no room in the memory that its stack is to lie in: that takes "
                   "weft::least_stack_size bytes beside the function's own");
      if (__builtin_add_overflow(options.size, needed, &options.size)) throw std::bad_alloc{};
    }
    detail::borrowed_stack on{options, detail::user_of<std::decay_t<F>>(f)};
    core_ = ::new (detail::place_on(*on, sizeof(made), alignof(made))) made{*on, std::forward<F>(f)};
    on.keep();
  }

  coroutine(coroutine&& other) noexcept : core_{std::exchange(other.core_, nullptr)} { expect_at_rest(); }
  coroutine& operator=(coroutine&& other) noexcept {
    coroutine given{std::move(other)};
    std::swap(core_, given.core_);
    return *this;
  }
  ~coroutine() {
    if (core_ != nullptr) core_->destroy();
  }

  /// Whether there is something to go on with: false when it is done, or empty.
  explicit operator bool() const noexcept { return core_ != nullptr; }
  bool done() const noexcept { return core_ == nullptr; }

  /// Goes on with it until it yields or ends, and gives what it yields or returns.
  [[gnu::always_inline]] Out resume(detail::or_nothing<In> in)
    requires(!std::is_void_v<In>)
  {
    return outcome(waiting_core().go_in(detail::place_of(in)));
  }
  [[gnu::always_inline]] Out resume()
    requires std::is_void_v<In>
  {
    return outcome(waiting_core().go_in(nullptr));
  }

  /// The same, but the yield that it waits in throws `failure`. One that has not begun never does: it ends with that.
  Out resume_throwing(std::exception_ptr failure) {
    WEFT_EXPECTS(failure != nullptr, "resume_throwing was given no exception: resume() goes on without one");
    return outcome(waiting_core().go_in_throwing(std::move(failure)));
  }

  /// Fetches the line that a resume() needs first. For who goes round more of them than a cache holds: some ten ahead, since
  /// as many resumes take as long as memory does.
  void prefetch() const noexcept { __builtin_prefetch(core_, 1); }

 private:
  template <class F>
  class body final : public detail::coroutine_core {
   public:
    template <class G>
    body(detail::stack_header& on, G&& f) : coroutine_core{on, run}, f_(std::forward<G>(f)) {}
    ~body() = delete;

   private:
    static void* run(coroutine_core& core, void* first) {
      struct function {  // gone when it has returned or thrown: nobody destroys a body
        F& f;
        ~function() { f.~F(); }
      } const mine{static_cast<body&>(core).f_};
      yielder yield{core};
      core.begin();
      if constexpr (std::is_void_v<Out>)
        return call(mine.f, yield, first), nullptr;
      else if constexpr (std::is_reference_v<Out>) {
        Out refers = call(mine.f, yield, first);
        return detail::place_of(refers);
      } else
        return ::new (static_cast<body&>(core).last_) Out(call(mine.f, yield, first));
    }
    static Out call(F& f, yielder& yield, [[maybe_unused]] void* first) {
      if constexpr (std::is_void_v<In>)
        return static_cast<Out>(detail::invoke(f, yield));
      else
        return static_cast<Out>(detail::invoke(f, yield, detail::passed_as<In>(first)));
    }

    using last = detail::stored<Out>;
    union {
      F f_;
    };
    alignas(last) std::byte last_[sizeof(last)];  // what it returned, until resume() has moved it out
  };

  // Whoever has resumed it comes back to where it was.
  void expect_at_rest() const noexcept {
    WEFT_EXPECTS(
        core_ == nullptr || core_->waits(),
        "a coroutine was moved while it runs: keep it in its place until it yields (a std::vector moves what it "
        "holds when it grows)");
  }

  detail::coroutine_core& waiting_core() const noexcept {
    if (core_ == nullptr || !core_->waits()) [[unlikely]]
      detail::fail_resume(core_);
    return *core_;
  }

  Out outcome(void* passed) {
    if (core_->has_ended()) [[unlikely]]
      return last(passed);
    return detail::passed_as<Out>(passed);
  }

  [[gnu::noinline]] Out last(void* passed) {
    struct finished {
      detail::coroutine_core* core;
      ~finished() { core->destroy(); }
    } const one{std::exchange(core_, nullptr)};
    if (auto failure = one.core->take_failure()) detail::rethrow(std::move(failure));
    if constexpr (!std::is_void_v<Out> && !std::is_reference_v<Out>) {
      struct value {
        Out* at;
        ~value() { at->~Out(); }
      } const returned{static_cast<Out*>(passed)};
      return std::move(*returned.at);
    } else {
      return detail::passed_as<Out>(passed);
    }
  }

  detail::coroutine_core* core_ = nullptr;
};

// ---- call_on_stack --------------------------------------------------------------------------------------------------

namespace detail { void call_on_stack(stack_header& on, void (*call)(void*), void* argument); }  // namespace detail

/// Calls `f` on a stack of `size` bytes, for a callee that needs more than is left here: a deep recursion, a large array.
/// Gives what it returns, throws what it throws. The stack is the pool's, so the next call finds it warm.
///
///     auto tree = w::call_on_stack(std::size_t{64} << 20, [&] { return parse(deeply_nested); });
///
/// Suspends  in a fiber what `f` calls may await.
/// Fails     where there is no stack: see stack_pool::take.
template <class F>
  requires std::is_invocable_v<F>
std::invoke_result_t<F> call_on_stack(std::size_t size, F&& f) {
  using result = std::invoke_result_t<F>;
  const detail::borrowed_stack on{{.size = size}, detail::user_of<std::remove_cvref_t<F>>(f)};
  if constexpr (std::is_void_v<result>) {
    auto call = [&f] { detail::invoke(std::forward<F>(f)); };
    detail::call_on_stack(*on, [](void* all) { (*static_cast<decltype(call)*>(all))(); }, &call);
  } else if constexpr (std::is_reference_v<result>) {
    std::remove_reference_t<result>* at = nullptr;
    auto call = [&] {
      result got = detail::invoke(std::forward<F>(f));
      at = __builtin_addressof(got);
    };
    detail::call_on_stack(*on, [](void* all) { (*static_cast<decltype(call)*>(all))(); }, &call);
    return static_cast<result>(*at);
  } else {
    std::optional<result> got;
    auto call = [&] { got.emplace(detail::invoke(std::forward<F>(f))); };
    detail::call_on_stack(*on, [](void* all) { (*static_cast<decltype(call)*>(all))(); }, &call);
    return std::move(*got);
  }
}

}  // namespace weft

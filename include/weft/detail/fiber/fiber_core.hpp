// The control block of a fiber, the call of one, and how it waits. Part of fiber.hpp, where it is told how they go together.
#pragma once

#include <concepts>
#include <coroutine>
#include <exception>
#include <type_traits>
#include <utility>
#include <weft/coroutine.hpp>
#include <weft/detail/base/config.hpp>
#include <weft/detail/base/invoke.hpp>
#include <weft/detail/base/standard.hpp>
#include <weft/detail/core/root.hpp>
#include <weft/detail/fiber/coroutine_core.hpp>
#include <weft/error.hpp>
#include <weft/stack_pool.hpp>
#include <weft/task.hpp>

namespace weft::detail {

/// What awaiters take a fiber's promise for.
struct fiber_promise : awaiting_promise {};

class fiber;
class letting_go;
struct hook_state;

/// An awaiter that can do what needs no wait before it suspends, for a fiber, which then need not leave its stack.
/// seems_ready(): it is worth the call. done_at_once(), with the root of who awaits: it is done; false: nothing has happened,
/// as always where that was told to stop.
template <class Awaiter>
concept may_need_no_wait = requires(Awaiter& by, const root& self) {
  { by.seems_ready() } noexcept -> std::same_as<bool>;
  { by.done_at_once(self) } noexcept -> std::same_as<bool>;
};

/// The stack of a fiber that has not begun; one that never does gives it back.
class reserved_stack {
 public:
  /// Throws where there is none.
  reserved_stack(const stack_options& options, const stack_user& user) : stack_{&stack_for(options, user)} {}
  reserved_stack(reserved_stack&& other) noexcept : stack_{std::exchange(other.stack_, nullptr)} {}
  ~reserved_stack() { give_back(); }

  void give_back() noexcept {
    stack_header* const mine = std::exchange(stack_, nullptr);
    if (mine == nullptr) return;
    mine->user = {};  // nothing ran on it that could be measured
    give_back_stack(*mine);
  }
  stack_header& take() noexcept { return *std::exchange(stack_, nullptr); }

 private:
  stack_header* stack_;
};

/// The call of a fiber, in the frame of the task that waits for it.
class fiber_call {
 public:
  using run_function = void (*)(fiber_call&);

  explicit fiber_call(run_function run) noexcept : run_{run} {}
  fiber_call(const fiber_call&) = delete;
  ~fiber_call();

  /// By the task, which has suspended. `on` is the fiber's from then on.
  std::coroutine_handle<> begin(reserved_stack& on, root& in, std::coroutine_handle<> caller) noexcept;

 private:
  friend fiber;

  run_function run_;  // on the fiber's stack: calls the function, and keeps what comes of it
  fiber* fiber_ = nullptr;
};

/// The control block of a fiber, on its stack. A switch touches two lines of it: the core's, and what is declared here first.
class fiber final : public coroutine_core, public boundary {
 public:
  using suspend_function = std::coroutine_handle<> (*)(void* awaiter, std::coroutine_handle<fiber_promise> self);

  /// The one that runs this. Ends the program if that is none.
  static fiber& running() noexcept;

  std::coroutine_handle<fiber_promise> handle() noexcept {
    return std::coroutine_handle<fiber_promise>::from_address(static_cast<frame*>(this));
  }
  fiber_promise& promise() noexcept { return handle().promise(); }

  /// The one whose frame this is; null: no fiber's.
  static fiber* of(const frame& one) noexcept;
  /// Whether it is one's, or a copy of that.
  static bool is_frame(const frame& one) noexcept;

  /// Where its stack ended when it began to wait: at the frame of the function that does.
  const void* waits_at() const noexcept { return waits_at_; }

  /// From now on it may not change threads, or, after as many calls of the other one, may again.
  void stay() noexcept { ++stays_; }
  void may_leave() noexcept { --stays_; }

  /// What has its blocking calls hooked; null: nothing. By the one that runs. See hook.hpp.
  hook_state* hooks() const noexcept { return hooks_; }
  void set_hooks(hook_state* its) noexcept { hooks_ = its; }

  /// Waits by `awaiter`: switches away, and its await_suspend runs on the worker's stack and says where that goes on: here,
  /// if it gives the handle. False: what was waited for ended stopped. Throws what await_suspend throws.
  /// Inlined in every build, so that the fiber's async stack begins with the program's own call.
  template <class Awaiter>
  [[nodiscard, gnu::always_inline]] inline bool suspend(Awaiter& awaiter) {
    wait one{suspend_by<Awaiter>, place_of(awaiter)};
    if (stays_ != 0) [[unlikely]]
      expect_may_leave();
    if constexpr (may_need_no_wait<Awaiter>)
      if (awaiter.seems_ready()) {
        try_outside(try_first<Awaiter>, one);
        if (one.suspend == nullptr) return true;
      }
    static_cast<void>(go_out(&one));
    if (stays_ != 0) [[unlikely]]
      expect_stayed();
    return !takes_stop();
  }

  /// By the one that runs: lets others run, where what this thread's worker would run next is another fiber, by a switch to
  /// that one. False: it is something else, and nothing has happened.
  WEFT_ALWAYS_INLINE static inline bool yields_across() {
    const pair fibers = next_across();
    if (fibers.next == nullptr) return false;
    if (!fibers.self->go_across(*fibers.next) && fibers.self->takes_stop()) fibers.self->throw_stop();
    return true;
  }

  /// By the one that runs: has its stack unwind, and who awaits it end stopped.
  [[noreturn]] void throw_stop();
  /// By the one that runs: whether its stack unwinds because of that.
  bool is_ending_stopped() const noexcept {
    return stop_on_its_way_ != nullptr && std::uncaught_exceptions() > uncaught_before_;
  }

 private:
  friend fiber_call;
  friend struct debug_fiber;
  friend letting_go*& lets_go_in(fiber& self) noexcept;
  friend coroutine_core;
  class stop_on_its_way;

  // What it waits in. On its stack, where the switch finds it in the cache.
  struct wait {
    suspend_function suspend;  // null: it was done without
    void* awaiter;
  };

  template <class Awaiter>
  static std::coroutine_handle<> suspend_by(void* awaiter, std::coroutine_handle<fiber_promise> self);
  template <class Awaiter>
  static void try_first(void* in);

  fiber(stack_header& on, fiber_call& call, root& in, std::coroutine_handle<> caller) noexcept;

  struct pair {
    fiber *self, *next;
  };
  static pair next_across() noexcept;
  void begin_turn(worker& here) noexcept;
  static void go_on(frame* self);
  static void stop_arrived(boundary& self) noexcept;
  static void* run(coroutine_core& core, void* nothing);
  void expect_may_leave() noexcept;
  void try_outside(void (*first)(void* in), wait& one) noexcept;
  void expect_stayed() noexcept;
  WEFT_ALWAYS_INLINE bool takes_stop() noexcept {
    const bool is_here = stop_is_here_;
    stop_is_here_ = false;
    return is_here;
  }

  void* unwound_ = nullptr;       // the frame that a stop destroyed last: whoever owns it, on this stack, skips it
  const void* ran_on_ = nullptr;  // the worker
  const void* waits_at_ = nullptr;
  unsigned stays_ : 24;  // so many say that it may not change threads; and a bit in builds that watch locks
  bool stop_is_here_ : 1 = false;
  bool ends_stopped_ : 1 = false;
  int errno_ = 0;                  // while it does not run; a switch reads nothing below
  letting_go* lets_go_ = nullptr;  // see root.hpp: let_go()
  hook_state* hooks_ = nullptr;
  const char* stays_on_ = nullptr;                    // the thread that it waited on last while it may not change
  const stop_on_its_way* stop_on_its_way_ = nullptr;  // that it threw last, while that exists
  int uncaught_before_ = 0;                           // so many exceptions were on their way when it did
  fiber_call& call_;
};

template <class Awaiter>
std::coroutine_handle<> fiber::suspend_by(void* awaiter, std::coroutine_handle<fiber_promise> self) {
  auto& by = *static_cast<Awaiter*>(awaiter);
  using next = decltype(by.await_suspend(self));
  if constexpr (std::is_void_v<next>) {
    by.await_suspend(self);
    return {};
  } else if constexpr (std::is_same_v<next, bool>) {
    return by.await_suspend(self) ? std::coroutine_handle<>{} : self;
  } else {
    return by.await_suspend(self);
  }
}

template <class Awaiter>
void fiber::try_first(void* in) {
  wait& one = *static_cast<wait*>(in);
  if (static_cast<Awaiter*>(one.awaiter)->done_at_once(*current_root())) one.suspend = nullptr;
}

template <class Call, class T>
class fiber_call_of final : public fiber_call {
 public:
  explicit fiber_call_of(Call& call) noexcept : fiber_call{run}, call_{call} {}

  T take() { return outcome_.take(); }

 private:
  static void run(fiber_call& self) {
    auto& mine = static_cast<fiber_call_of&>(self);
    try {
      if constexpr (std::is_void_v<T>)
        mine.call_(), mine.outcome_.set_value(nothing{});
      else
        mine.outcome_.set_value(mine.call_());
    } catch (const stopped&) {  // the fiber ends so
      throw;
    } catch (...) {  // the task throws it
      mine.outcome_.set_exception(caught());
    }
  }

  Call& call_;
  outcome<T> outcome_;
};

/// `co_await` of a fiber's call, by the task that has it in its frame.
struct fiber_run : knows_roots {
  fiber_run(fiber_call& call, reserved_stack& stack) noexcept : of{&call}, on{&stack} {}
  bool await_ready() const noexcept { return false; }
  template <class Promise>
  std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> caller) const {
    root& self = suspending(caller);
    return transfer(self, of->begin(*on, self, caller));
  }
  void await_resume() const noexcept {}
  fiber_call* of;
  reserved_stack* on;
};

template <class F, class... Args>
task<kept_result<F, Args...>> run_in_fiber(reserved_stack on, F f, Args... args) {
  using result = kept_result<F, Args...>;
  static_assert(
      !is_task<result>,
      "a fiber runs a plain function, and this one gives a task, which nobody would start: fork it, or have the "
      "fiber await it");
  auto call = [&]() -> result { return detail::invoke(std::move(f), std::move(args)...); };
  fiber_call_of<decltype(call), result> running{call};
  co_await fiber_run{running, on};
  co_return running.take();
}

/// The function that a fork calls, where it may call it again: each time on a stack that is taken then.
template <class F>
struct in_fiber {
  stack_options options;
  F f;
  template <class... Args>
  WEFT_COROUTINE_TAKES_OVER auto operator()(Args... args) const {
    return run_in_fiber<F, Args...>(reserved_stack{options, user_of<F>(f)}, f, std::move(args)...);
  }
};

}  // namespace weft::detail

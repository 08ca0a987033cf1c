// Fibers: plain functions that wait like tasks, at any depth of calls.
//
//     co_await w::with_scope([](w::scope& s) -> w::task<> {
//       w::fork<int> sum = s.go([] {  // a plain function, on a stack of its own
//         int all = 0;
//         for (auto& source : sources) all += w::await(source.next());
//         return all;
//       });
//       use(co_await std::move(sum));
//     });
//
//
// A fiber is a frame made by hand in a root, as a boundary is: its resume function switches to the fiber's stack, and what
// comes back from there is the next await. So an awaiter that suspends a coroutine suspends a fiber, and knows nothing of
// it; a task that a fiber awaits returns into that frame; a stop that has destroyed such tasks ends there, and goes on
// through the fiber's stack as `stopped`.
//
//   root of the fork  ->  task that calls the fiber: holds function, arguments, result  ->  the fiber  ->  what it awaits
//
// An awaiter's await_suspend runs on the worker's stack, after the switch: from the moment that it has published the
// fiber, another thread may go on with it.
//
// The switch stands in await, inlined, and no function of the library returns across it: a processor predicts a return by
// the calls that it has seen, which on each side of a switch are those of the other side.
//
// Two fibers of a pool that yield, one after the other on a worker, need not pass by its loop: the one that yields takes the
// other out of the line, as the loop would, and switches to it. What the worker has left, which is in the one's context, goes
// into the other's, so whichever leaves by a wait comes back to the loop. The one goes to the end of the line as the other is
// taken out, and the line stays locked for thieves until the other says, on its own stack, that the one has left. Whatever is
// not as it mostly is goes the way of all waits: see next_across().
//
// Long because a fiber, the await that leaves its stack, and what starts it are inlined into each other.
//
// Rejected: (a) a fiber as a root of its own kind: all that forks do for tasks (results, failures, restarts, views, stops)
// once more. (b) await_suspend on the fiber's stack, before the switch: whoever wakes it would have to wait until it has
// left. (c) Stop by a flag that the code asks for: no plain function does.
#pragma once

#include <concepts>
#include <exception>
#include <type_traits>
#include <utility>
#include <weft/clock.hpp>
#include <weft/coroutine.hpp>
#include <weft/detail/base/invoke.hpp>
#include <weft/detail/base/standard.hpp>
#include <weft/hop.hpp>
#include <weft/scope.hpp>

namespace weft {

namespace detail {

/// What awaiters take a fiber's promise for.
struct fiber_promise : awaiting_promise {};

class fiber;
class letting_go;

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

  /// Where its stack ended when it began to wait: at the frame of the function that does.
  const void* waits_at() const noexcept { return waits_at_; }

  /// From now on it may not change threads, or, after as many calls of the other one, may again.
  void stay() noexcept { ++stays_; }
  void may_leave() noexcept { --stays_; }

  /// Waits by `awaiter`: switches away, and its await_suspend runs on the worker's stack and says where that goes on: here,
  /// if it gives the handle. False: what was waited for ended stopped. Throws what await_suspend throws.
  template <class Awaiter>
  [[nodiscard]] WEFT_ALWAYS_INLINE inline bool suspend(Awaiter& awaiter) {
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
  int errno_ = 0;                                     // while it does not run; a switch reads nothing below
  letting_go* lets_go_ = nullptr;                     // see root.hpp: let_go()
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

}  // namespace detail

// ---- await ------------------------------------------------------------------------------------------------------------

/// Waits, in a fiber, for what a task would `co_await`: at any depth of calls, and gives the same.
///
///     std::string line = w::await(lines.receive());
///
/// Suspends  the fiber, as the awaitable would a task; other work runs on this thread meanwhile.
/// Cancel    throws `stopped`, which must be let pass: a stop that is swallowed is thrown again by the next await that
///           waits. Not from a destructor, where it would end the program: there, await what is `shielded`.
/// Fails     throws what the awaitable does. Outside of a fiber it ends the program with a sentence.
/// Threads   goes on on its own executor, perhaps on another thread: compilers may keep the address of a thread_local, and
///           what pthread_self() gave, over the call. The value of errno, and the exceptions that are being handled, come
///           along; errno's address is one that they may keep, so read it behind a wait in a function that does not wait.
template <class Awaitable>
  requires awaitable<Awaitable>
WEFT_ALWAYS_INLINE inline decltype(auto) await(Awaitable&& awaitable) {
  detail::fiber& self = detail::fiber::running();
  using whose = std::conditional_t<detail::owns_callees<Awaitable>, Awaitable, Awaitable&&>;
  whose mine{std::forward<Awaitable>(awaitable)};  // if it owns frames, these go when this returns
  auto&& known = detail::known_to_root(static_cast<whose&&>(mine));
  auto&& awaiter = detail::get_awaiter(static_cast<decltype(known)&&>(known));
  if (!awaiter.await_ready() && !self.suspend(awaiter)) self.throw_stop();
  using given = decltype(awaiter.await_resume());
  if constexpr (std::is_rvalue_reference_v<given>) {  // to what may lie in the awaiter, which goes here
    std::remove_reference_t<given> value = awaiter.await_resume();
    return value;
  } else {
    return awaiter.await_resume();
  }
}

/// What all fibers of the process have done.
struct fiber_stats {
  std::size_t created;     ///< and begun
  std::size_t ended;       ///< however
  std::size_t live;        ///< created, and not ended
  std::size_t pooled;      ///< stacks that the process's pool keeps warm for the next ones
  std::size_t switches;    ///< to a fiber, from whatever ran before
  std::size_t migrations;  ///< of these, to one that had run on another thread before
};

/// Reads them, while all runs on: they are of about the same moment. A thread that ends leaves its counts to the next one.
///
/// Threads  any.
/// Cost     a load for each count of each thread that there was at once; a fiber counts in what is its thread's alone.
fiber_stats fibers() noexcept;

/// What a fiber says of itself. Each function ends the program with a sentence outside of a fiber.
namespace this_fiber {

/// Lets others run; see weft::yield.
WEFT_ALWAYS_INLINE inline void yield() {
  if constexpr (detail::jumps_across)
    if (detail::fiber::yields_across()) return;
  weft::await(weft::yield());
}

/// Sleeps, by the clock of the environment; see weft::sleep_for.
template <class Rep, class Period>
void sleep_for(std::chrono::duration<Rep, Period> d) {
  weft::await(weft::sleep_for(d));
}

/// What tells this fiber from all others that are alive.
inline const void* id() noexcept { return &detail::fiber::running(); }

/// Whether a fiber runs this.
bool is_running() noexcept;

/// Ends this fiber: its stack unwinds, and who awaits it finds it stopped.
[[noreturn]] void exit();

/// Forbids this fiber to change threads, to the end of the block: for code that keeps the address of a thread_local, or a
/// lock that belongs to its thread, over calls that may wait.
///
///     const w::this_fiber::stay here;
///     call_library(&its_thread_local_state);  // which calls back, and that waits
///
/// Fails     a wait where other threads may go on with the fiber (on a pool, or without an executor) ends the program with a
///           sentence, whether or not one would have; so does one that did. On a worker of a worker_group, a
///           manual_executor or below sync_wait a fiber stays. The await of a task is a wait, also of one that does not.
/// Lifetime  on the fiber's own stack. Any number at once.
/// Cost      a test of one word at each wait of a fiber.
class stay {
 public:
  stay() noexcept : fiber_{detail::fiber::running()} { fiber_.stay(); }
  stay(const stay&) = delete;
  ~stay() { fiber_.may_leave(); }

 private:
  detail::fiber& fiber_;
};

}  // namespace this_fiber

// ---- scope::go --------------------------------------------------------------------------------------------------------

template <class F, class... Args>
  requires std::is_invocable_v<std::decay_t<F>, std::decay_t<Args>...>
auto scope::go(F&& f, Args&&... args) {
  return go(stack_options{}, std::forward<F>(f), std::forward<Args>(args)...);
}

template <class F, class... Args>
  requires std::is_invocable_v<std::decay_t<F>, std::decay_t<Args>...>
auto scope::go(const stack_options& options, F&& f, Args&&... args) {
  using function = std::decay_t<F>;
  detail::reserved_stack on{options, detail::user_of<function>(f)};  // before there is work, which could only fail
  if constexpr (std::is_copy_constructible_v<function> && (std::is_copy_constructible_v<std::decay_t<Args>> && ...))
    if (restarts()) {
      on.give_back();  // it takes the same one
      return fork(detail::in_fiber<function>{options, std::forward<F>(f)}, std::forward<Args>(args)...);
    }
  return fork(detail::run_in_fiber<function, std::decay_t<Args>...>(std::move(on), std::forward<F>(f),
                                                                    std::forward<Args>(args)...));
}

}  // namespace weft

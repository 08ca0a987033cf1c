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
// A fiber looks like a coroutine frame, whose resume function switches to the fiber's stack. The switch back brings the awaiter
// of the fiber's next await. So an awaiter suspends a fiber as it does a coroutine, without knowing the difference. A task that
// a fiber awaits returns into that frame. A stop that has destroyed such tasks ends at that frame, and unwinds the fiber's
// stack as the exception `stopped`.
//
//   root of the fork  ->  task that calls the fiber: holds function, arguments, result  ->  the fiber  ->  what it awaits
//
// An awaiter's await_suspend() runs on the worker's stack, after the switch: as soon as it has published the fiber, another
// thread may resume it.
//
// The switch is inlined into await(), and no function of the library returns across it: processors predict returns from the
// calls that they have seen, and those were made on the other stack.
//
// On a pool, a fiber that yields switches directly to the next fiber in its worker's queue, without returning to the worker's
// loop. It takes that fiber out of the queue, as the loop would, and hands the saved context of the loop on to it, so whichever
// fiber waits next returns to the loop. The first fiber goes to the end of the queue, which stays locked for thieves until the
// second one confirms, on its own stack, that the first one's stack is free. All other cases take the way of other waits: see
// next_across().
//
// Rejected: (a) a fiber as a root of another kind: all that forks do for tasks (results, failures, restarts, views, stops)
// would exist twice. (b) await_suspend() on the fiber's stack, before the switch: a waker would have to wait until the fiber
// has left its stack. (c) A flag that the code polls for stops: plain functions don't.
#pragma once

#include <concepts>
#include <exception>
#include <type_traits>
#include <utility>
#include <weft/clock.hpp>
#include <weft/coroutine.hpp>
#include <weft/detail/base/invoke.hpp>
#include <weft/detail/base/standard.hpp>
#include <weft/detail/fiber/fiber_core.hpp>
#include <weft/hop.hpp>
#include <weft/scope.hpp>

namespace weft {

// ---- await ------------------------------------------------------------------------------------------------------------

/// Waits in a fiber, at any depth of calls, for what a task would `co_await`, and gives the same.
///
///     std::string line = w::await(lines.receive());
///
/// Suspends  the fiber, where the awaitable would suspend a task. Other work runs on this thread meanwhile.
/// Cancel    throws `stopped`. Do not swallow it: the next await that waits would throw it again. In a destructor, where a
///           throw would end the program, await something `shielded`.
/// Fails     throws what the awaitable throws. Outside of a fiber it ends the program with a sentence.
/// Threads   the fiber goes on on its own executor, perhaps on another thread. A compiler may keep the address of a
///           thread_local, and the result of pthread_self(), across the call. The value of errno and the exceptions being
///           handled move with the fiber; the address of errno may be kept, too, so read it after a wait only in a function
///           that does not wait.
template <detail::awaitable_argument Awaitable>
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
template <int = 0>
void await(detail::refused<>);
template <int = 0>
detail::void_is_no_awaitable await(...);

/// Counts of all fibers of the process.
struct fiber_stats {
  std::size_t created;     ///< fibers that have begun
  std::size_t ended;       ///< fibers that have ended, in whatever way
  std::size_t live;        ///< fibers that have begun and not ended
  std::size_t pooled;      ///< idle stacks that the process's pool keeps for the next fibers
  std::size_t switches;    ///< switches to a fiber
  std::size_t migrations;  ///< how many of these were to a fiber that had run on another thread before
};

/// Reads the counts while fibers run on, so they are of about the same moment. The counts of threads that have ended are
/// included.
///
/// Threads  any.
/// Cost     a load for each count and each thread. To count costs a fiber no atomic read-modify-write: each thread has its own
///          counts.
fiber_stats fibers() noexcept;

/// Functions for the running fiber. Outside of a fiber each of them but is_running() ends the program with a sentence.
namespace this_fiber {

/// Lets other jobs run; see weft::yield.
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

/// Identifies this fiber: an address that no other live fiber has.
inline const void* id() noexcept { return &detail::fiber::running(); }

/// Whether the caller runs in a fiber.
bool is_running() noexcept;

/// Ends this fiber: unwinds its stack; whoever awaits it finds it stopped.
[[noreturn]] void exit();

/// Keeps this fiber on its thread until the end of the block: for code that keeps the address of a thread_local, or a lock that
/// belongs to its thread, across calls that may wait.
///
///     const w::this_fiber::stay here;
///     call_library(&its_thread_local_state);  // which calls back, and that waits
///
/// Misuse    a wait meanwhile ends the program with a sentence where another thread might resume the fiber: on a pool, or
///           without an executor. On a worker of a worker_group, on a manual_executor and below sync_wait() a fiber stays on
///           its thread. Awaiting a task counts as a wait, also if the task does not wait.
/// Lifetime  lies on the fiber's own stack. They may be nested.
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

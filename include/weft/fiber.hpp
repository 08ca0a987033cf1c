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
#include <weft/detail/fiber/fiber_core.hpp>
#include <weft/hop.hpp>
#include <weft/scope.hpp>

namespace weft {

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

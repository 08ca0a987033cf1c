// What changes for a callable and all below it: with_memory, with_local, with_stop, with_deadline, with_env, shielded; and
// what a task asks of its own stop.
//
//     co_await w::with_deadline(5s, fetch, url);
//     co_await w::with_local(request_id, 7, serve);
//     co_await w::shielded(commit());
//
// All with_* take a callable and its arguments, moved into the frame, and never a ready-made awaitable: a task that has
// not started has its frame's memory from where it was called, and all else from where it is awaited.
//
// What changes neither executor nor stop changes the env of the root that runs, and changes it back when the frame that
// did so goes, however it goes. The rest is a scope without forks, since a stop needs a root to end at.
#pragma once

#include <source_location>
#include <type_traits>
#include <utility>
#include <vector>
#include <weft/detail/base/config.hpp>
#include <weft/detail/base/invoke.hpp>
#include <weft/detail/base/owned.hpp>
#include <weft/detail/base/standard.hpp>
#include <weft/detail/scope/with.hpp>
#include <weft/items.hpp>
#include <weft/scope.hpp>

namespace weft {

/// Awaits `callable(args...)`, with all frames below it from `memory`, which outlives it.
///
///     std::pmr::monotonic_buffer_resource arena;
///     co_await w::with_memory(&arena, parse, std::move(text));
///
/// Fails   std::bad_alloc at the call that gets no frame. A frame that is alive at the end (a task that was returned, a
///         fork of an outer scope) ends the program with a sentence; so does work on another executor below, for the
///         resource would be used by both at once: see per_worker and env::memory_is_shared.
/// Cost    that of two awaits.
template <class F, class... Args>
  requires std::is_invocable_v<std::decay_t<F>, std::decay_t<Args>...>
WEFT_COROUTINE_TAKES_OVER auto with_memory(std::pmr::memory_resource* memory, F&& callable, Args&&... args) {
  WEFT_EXPECTS_NO_DOOMED_TEMPORARY(F);
  return detail::run_with_memory<detail::with_result<F, Args...>, detail::callable<F>, std::decay_t<Args>...>(
      memory, detail::is_per_worker(memory), std::forward<F>(callable), std::forward<Args>(args)...);
}

/// Awaits `callable(args...)`, below which `key` has `value`: see weft::local.
template <class T, class U, class F, class... Args>
  requires std::is_constructible_v<T, U> && std::is_invocable_v<std::decay_t<F>, std::decay_t<Args>...>
WEFT_COROUTINE_TAKES_OVER auto with_local(const local<T>& key, U&& value, F&& callable, Args&&... args) {
  WEFT_EXPECTS_NO_DOOMED_TEMPORARY(F);
  return detail::run_with_local<detail::with_result<F, Args...>, T, detail::callable<F>, std::decay_t<Args>...>(
      &key, T(std::forward<U>(value)), std::forward<F>(callable), std::forward<Args>(args)...);
}

/// Awaits `callable(args...)`, which a stop of `stop` stops, beside one of the task outside. Ends stopped then: the task
/// outside goes on only behind a boundary, such as as_result.
template <class F, class... Args>
  requires std::is_invocable_v<std::decay_t<F>, std::decay_t<Args>...>
WEFT_COROUTINE_TAKES_OVER auto with_stop(stop_token stop, F&& callable, Args&&... args) {
  WEFT_EXPECTS_NO_DOOMED_TEMPORARY(F);
  using body = detail::without_scope<detail::callable<F>>;
  return detail::scope_access::run<detail::with_result<F, Args...>, body, std::decay_t<Args>...>(
      {.stop = stop}, nullptr, body{std::forward<F>(callable)}, std::forward<Args>(args)...);
}

/// Awaits `callable(args...)`, which is stopped when a time has come: `5s` from this call, by the clock of the
/// environment, or a time point of it. A deadline is inherited by all below; of several, the nearest holds. The cause of
/// the stop has this line.
///
///     auto page = co_await w::as_result(w::with_deadline(2s, fetch, url));  // is_stopped(), if it took longer
///
/// Suspends  until what was called has ended: what ignores its stop is waited for.
/// Cancel    as with_stop, which this is, but for who stops. For an error instead of a stop, see timeout().
/// Cost      that of a scope; where it waits, one timer for all below. check_stop() reads the clock.
template <class F, class... Args>
  requires std::is_invocable_v<std::decay_t<F>, std::decay_t<Args>...>
WEFT_COROUTINE_TAKES_OVER auto with_deadline(detail::deadline_here deadline, F&& callable, Args&&... args) {
  WEFT_EXPECTS_NO_DOOMED_TEMPORARY(F);
  using body = detail::without_scope<detail::callable<F>>;
  return detail::scope_access::run<detail::with_result<F, Args...>, body, std::decay_t<Args>...>(
      {.deadline = deadline.when, .where = deadline.where}, nullptr, body{std::forward<F>(callable)},
      std::forward<Args>(args)...);
}

/// Awaits `callable(args...)` in the environment that is given, on its executor. Take a copy of current_env() and change
/// that. A stop of the task outside, or of `environment.stop`, stops it. The result comes home to the task's executor.
///
///     w::env elsewhere = w::current_env();
///     elsewhere.executor = &pool;
///     co_await w::with_env(elsewhere, compute);
template <class F, class... Args>
  requires std::is_invocable_v<std::decay_t<F>, std::decay_t<Args>...>
WEFT_COROUTINE_TAKES_OVER auto with_env(const env& environment, F&& callable, Args&&... args) {
  WEFT_EXPECTS_NO_DOOMED_TEMPORARY(F);
  return detail::run_with_env<detail::with_result<F, Args...>, detail::callable<F>, std::decay_t<Args>...>(
      environment, std::forward<F>(callable), std::forward<Args>(args)...);
}

/// Awaits, and puts a stop of the task off until that has ended: for what must not be torn apart. The next wait behind it
/// stops.
///
/// Cost  an await and two atomic operations.
template <detail::awaitable_argument Awaitable>
WEFT_COROUTINE_WRAPPER auto shielded(Awaitable&& awaitable) {
  return detail::run_shielded<await_result<Awaitable>>(detail::as_task(std::forward<Awaitable>(awaitable)));
}
template <int = 0>
void shielded(detail::refused<>);

/// `co_await check_stop();` ends a task that was told to stop, and does nothing else: for long computations, which have
/// no wait. Cost: a load for each root around, behind a call; where there is a deadline, the clock is read.
inline detail::stop_point check_stop() noexcept { return {}; }

namespace detail { items<stop_cause> causes_here(); }

/// Why the running task was told to stop, and why that was, the nearest first; empty if it was not. A scope that stops
/// because of another one gives both. A stop that no line of the program has asked for, as of one that a when_any has not
/// chosen, or at the end of a timeout(), has a `where` whose line is 0.
///
///     for (const w::stop_cause& why : w::why_stopped())
///       log("{} ({}:{})", why.reason, why.where.file_name(), why.where.line());
WEFT_CONTAINERS inline std::vector<stop_cause> why_stopped() { return detail::causes_here(); }

namespace this_task {

/// Whether this runs because a stop is ending the task, or the fiber, that runs: true in destructors of what lies in the frames
/// that a stop destroys, and on the stack that it unwinds. False where they end otherwise, in cleanup given to on_scope_exit,
/// and in other work that a destructor starts.
///
/// A stop of a task is no exception, so `std::uncaught_exceptions()` says nothing of it: who undoes what was not finished asks
/// for both.
///
///     ~transaction() { std::uncaught_exceptions() > before || w::this_task::is_ending_stopped() ? roll_back() : commit(); }
///
/// Threads  any; false where no task runs. On the stack of a weft::coroutine that is destroyed half-way: true, but where a fiber
///          destroys it.
/// Cost     a call.
bool is_ending_stopped() noexcept;

}  // namespace this_task

// ---- detach -----------------------------------------------------------------------------------------------------------

namespace detail {

template <class F, class... Args>
void expect_detachable() {
  static_assert(
      owns_nothing<std::decay_t<F>>,
      "detach: the function may capture nothing, for nobody waits until it has ended: give it what it needs as "
      "arguments, which are moved into its frame");
  static_assert((is_owned<std::decay_t<Args>> && ...),
                "detach: an argument refers to something of somebody else's (a pointer, reference_wrapper, span or "
                "string_view), which may be gone before the work: give it an object that owns it");
}

}  // namespace detail

/// Starts `function(args...)` on `ex`, on its own: nobody waits for it, no stop reaches it. So it owns what it uses: the
/// function captures nothing and its arguments are no references; anything else does not compile. What it throws is given
/// to `on_error(std::exception_ptr)`, which owns what it uses, too.
///
/// Prefer a scope. Detached work runs on when its executor goes, which ends the program.
///
/// Fails     std::bad_alloc. A handler that throws ends the program.
/// Cost      three allocations.
template <class F, class Handler, class... Args>
  requires std::is_invocable_v<std::decay_t<Handler>, std::exception_ptr> &&
           std::is_invocable_v<std::decay_t<F>, std::decay_t<Args>...>
void detach(executor& ex, F&& function, Handler&& on_error, Args&&... args) {
  detail::expect_detachable<F, Args...>();
  static_assert(!std::is_pointer_v<std::decay_t<Handler>> || detail::owns_nothing<std::decay_t<Handler>>);
  using value_type = detail::forked_t<F, Args...>;
  start(ex,
        detail::call_in_fork<detail::callable<F>, std::decay_t<Args>...>(std::forward<F>(function),
                                                                         std::forward<Args>(args)...),
        [handler = std::decay_t<Handler>(std::forward<Handler>(on_error))](result<value_type> how) mutable {
          if (std::exception_ptr failure = how.exception()) detail::invoke(handler, std::move(failure));
        });
}

}  // namespace weft

// Runs a callable, and all work below it, with something changed: with_memory, with_local, with_stop, with_deadline, with_env,
// shielded. Also what a task can ask about its own stop, and detach().
//
//     co_await w::with_deadline(5s, fetch, url);
//     co_await w::with_local(request_id, 7, serve);
//     co_await w::shielded(commit());
//
// All with_* take a callable and its arguments, which are moved into the frame, and never a ready-made awaitable. For the frame
// of a task is allocated where the task is called, while it inherits everything else where it is awaited.
//
// with_memory and with_local, which change neither executor nor stop, change the env of the running root, and restore it when
// their frame is destroyed, in whatever way. The other with_* are scopes without forks, since a stop needs a root at which it
// ends.
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

/// Awaits `callable(args...)`, and allocates all coroutine frames below it from `memory`, which outlives it.
///
///     std::pmr::monotonic_buffer_resource arena;
///     co_await w::with_memory(&arena, parse, std::move(text));
///
/// Fails   the call that gets no frame throws std::bad_alloc. A frame that is still alive at the end (of a task that was
///         returned, of a fork of an outer scope) ends the program with a sentence. So does work on another executor below,
///         since both would use the resource at once: see per_worker and env::memory_is_shared.
/// Cost    that of two awaits.
template <class F, class... Args>
  requires std::is_invocable_v<std::decay_t<F>, std::decay_t<Args>...>
WEFT_COROUTINE_TAKES_OVER auto with_memory(std::pmr::memory_resource* memory, F&& callable, Args&&... args) {
  WEFT_EXPECTS_NO_DOOMED_TEMPORARY(F);
  return detail::run_with_memory<detail::with_result<F, Args...>, detail::callable<F>, std::decay_t<Args>...>(
      memory, detail::is_per_worker(memory), std::forward<F>(callable), std::forward<Args>(args)...);
}

/// Awaits `callable(args...)`, and binds `value` to `key` for all work below it: see weft::local. Cost: that of two awaits.
template <class T, class U, class F, class... Args>
  requires std::is_constructible_v<T, U> && std::is_invocable_v<std::decay_t<F>, std::decay_t<Args>...>
WEFT_COROUTINE_TAKES_OVER auto with_local(const local<T>& key, U&& value, F&& callable, Args&&... args) {
  WEFT_EXPECTS_NO_DOOMED_TEMPORARY(F);
  return detail::run_with_local<detail::with_result<F, Args...>, T, detail::callable<F>, std::decay_t<Args>...>(
      &key, T(std::forward<U>(value)), std::forward<F>(callable), std::forward<Args>(args)...);
}

/// Awaits `callable(args...)`, which is stopped when `stop` is, or when the awaiting task is. If `stop` has stopped it, the
/// awaiting task ends stopped as well, up to a boundary such as as_result().
///
/// Cost  that of a scope.
template <class F, class... Args>
  requires std::is_invocable_v<std::decay_t<F>, std::decay_t<Args>...>
WEFT_COROUTINE_TAKES_OVER auto with_stop(stop_token stop, F&& callable, Args&&... args) {
  WEFT_EXPECTS_NO_DOOMED_TEMPORARY(F);
  using body = detail::without_scope<detail::callable<F>>;
  return detail::scope_access::run<detail::with_result<F, Args...>, body, std::decay_t<Args>...>(
      {.stop = stop}, nullptr, body{std::forward<F>(callable)}, std::forward<Args>(args)...);
}

/// Awaits `callable(args...)`, which is stopped at a deadline: a time point of the clock of the environment, or a duration such
/// as `5s` from this call on. Work below inherits the deadline; of several, the earliest one counts. The stop's cause names
/// this line.
///
///     auto page = co_await w::as_result(w::with_deadline(2s, fetch, url));  // is_stopped(), if it took longer
///
/// Suspends  until the callable has ended: work that ignores its stop is waited for.
/// Cancel    as with_stop, with the deadline in place of the token. For an error instead of a stop, see timeout().
/// Cost      that of a scope, and, once it waits, of one timer for all work below. check_stop() reads the clock.
template <class F, class... Args>
  requires std::is_invocable_v<std::decay_t<F>, std::decay_t<Args>...>
WEFT_COROUTINE_TAKES_OVER auto with_deadline(detail::deadline_here deadline, F&& callable, Args&&... args) {
  WEFT_EXPECTS_NO_DOOMED_TEMPORARY(F);
  using body = detail::without_scope<detail::callable<F>>;
  return detail::scope_access::run<detail::with_result<F, Args...>, body, std::decay_t<Args>...>(
      {.deadline = deadline.when, .where = deadline.where}, nullptr, body{std::forward<F>(callable)},
      std::forward<Args>(args)...);
}

/// Awaits `callable(args...)` in another environment, on the executor of that. To make one, change a copy of current_env(). The
/// work is stopped when the awaiting task is, or `environment.stop`. The awaiting task resumes on its own executor.
///
///     w::env elsewhere = w::current_env();
///     elsewhere.executor = &pool;
///     co_await w::with_env(elsewhere, compute);
///
/// Cost  that of a scope and a frame; on another executor, also a post there and one back.
template <class F, class... Args>
  requires std::is_invocable_v<std::decay_t<F>, std::decay_t<Args>...>
WEFT_COROUTINE_TAKES_OVER auto with_env(const env& environment, F&& callable, Args&&... args) {
  WEFT_EXPECTS_NO_DOOMED_TEMPORARY(F);
  return detail::run_with_env<detail::with_result<F, Args...>, detail::callable<F>, std::decay_t<Args>...>(
      environment, std::forward<F>(callable), std::forward<Args>(args)...);
}

/// Awaits, and defers a stop of the task until the awaited work has ended: for work that must not be interrupted. A deferred
/// stop ends the task at its next wait after that.
///
/// Cost  an await and two atomic operations.
template <detail::awaitable_argument Awaitable>
WEFT_COROUTINE_WRAPPER auto shielded(Awaitable&& awaitable) {
  return detail::run_shielded<await_result<Awaitable>>(detail::as_task(std::forward<Awaitable>(awaitable)));
}
template <int = 0>
void shielded(detail::refused<>);
template <int = 0>
detail::void_is_no_awaitable shielded(...);

/// `co_await check_stop();` ends a task that was told to stop; otherwise it does nothing, and never suspends. For long
/// computations without waits. Cost: a call, and a load for each root around the task; with a deadline, it also reads the
/// clock.
inline detail::stop_point check_stop() noexcept { return {}; }

namespace detail { items<stop_cause> causes_here(); }

/// Why the running task was told to stop, the nearest cause first; empty if it was not. A scope that was stopped because of
/// another one has a cause of each. For a child that a when_any or the like did not choose, or that a timeout() has ended, the
/// cause names the line of that call. A stop that no line of the program has requested, as at the end of an executor, has a
/// `where` whose line is 0.
///
///     for (const w::stop_cause& why : w::why_stopped())
///       log("{} ({}:{})", why.reason, why.where.file_name(), why.where.line());
///
/// Threads  the task's own. Throws std::bad_alloc.
WEFT_CONTAINERS inline std::vector<stop_cause> why_stopped() { return detail::causes_here(); }

namespace this_task {

/// Whether a stop is ending the running task or fiber right now: true in the destructors of what lies in the frames that a stop
/// destroys, and on the stack that it unwinds. False where these end otherwise, in cleanup given to on_scope_exit, and in other
/// work that a destructor starts.
///
/// A stop of a task is no exception, so `std::uncaught_exceptions()` does not count it: a destructor that undoes unfinished
/// work asks both.
///
///     ~transaction() { std::uncaught_exceptions() > before || w::this_task::is_ending_stopped() ? roll_back() : commit(); }
///
/// Threads  any; false where no task runs. On the stack of a weft::coroutine that is destroyed before its end: true, unless a
///          fiber destroys it.
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

/// Starts `function(args...)` on `ex`, independent of the caller: nobody waits for it, and no stop reaches it. So it must own
/// what it uses: the function captures nothing, and its arguments are no references; anything else does not compile. What it
/// throws is passed to `on_error(std::exception_ptr)`, which must own what it uses, too.
///
/// Prefer a scope. Detached work that is still running when its executor is destroyed ends the program.
///
/// Fails     throws std::bad_alloc. A handler that throws ends the program.
/// Threads   any; also outside of tasks. Does not suspend.
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

// Changing the executor: resume_on, start_on and continue_on; and letting others run: yield.
//
//     w::task<picture> draw(scene what) {
//       co_await w::resume_on(gui);  // until draw() ends; its caller goes on on its own executor
//       co_return paint(what);
//     }
//     auto answer = co_await w::start_on(workers, think());  // all of think() on the pool
//
// A task that has hopped returns to its caller's executor when it ends, so a caller never finds itself elsewhere. A stop does
// not end a hop, since a job can't be removed from an executor's queue; it takes effect at the next wait. How hops work is
// described in detail/task/hop.hpp.
#pragma once

#include <coroutine>
#include <exception>
#include <new>
#include <type_traits>
#include <utility>
#include <weft/detail/task/hop.hpp>
#include <weft/on_scope_exit.hpp>
#include <weft/pipe.hpp>
#include <weft/task.hpp>

namespace weft {

/// `co_await resume_on(ex);` moves this task to `ex`, until it returns, throws or is stopped; whoever awaits it goes on on its
/// own executor. What this task calls meanwhile runs on `ex`, too.
///
/// In an async_generator the body stays on `ex` until it ends: at each co_yield it returns to its consumer's executor, and hops
/// again when the next value is asked for. A body that ends, fails or is stopped returns, too. A generator that is dropped
/// between two values is destroyed on the thread that drops it.
///
/// Suspends  unless the task is on `ex` already.
/// Cancel    a task that was told to stop ends without a hop. A stop during the hop takes effect at the next wait.
/// Fails     throws std::bad_alloc; the task then stays where it is.
/// Lifetime  `ex` outlives the task.
/// Cost      one block of frame memory, and a post each way; in an async_generator for each value.
inline detail::hop resume_on(executor& ex) noexcept { return detail::hop{ex}; }

/// Runs an awaitable on `ex` from its beginning, while the awaiting task stays on its own executor. `t | start_on(ex)` is the
/// same. Otherwise as resume_on, with one frame more.
template <detail::awaitable_argument Awaitable>
WEFT_COROUTINE_TAKES_OVER auto start_on(executor& ex, Awaitable&& work) {
  return detail::start_on_in_task<Awaitable>(ex, std::forward<Awaitable>(work));
}
template <int = 0>
void start_on(detail::given<executor&>, detail::refused<>);
template <int = 0>
detail::void_is_no_awaitable start_on(detail::given<executor&>, ...);
inline auto start_on(executor& ex) noexcept { return detail::make_adaptor<detail::start_on_kind>(&ex); }

/// `x | continue_on(ex)`: awaits x here, then moves the awaiting task to `ex`, as resume_on() does. In a pipe what follows runs
/// there: `read(file) | continue_on(workers) | then(parse)`.
///
/// Cancel  as x. The hop is no stop point, so the value of x is not lost.
inline auto continue_on(executor& ex) noexcept { return detail::make_adaptor<detail::continue_on_kind>(&ex); }

/// `co_await yield();` lets others run: this task goes on when its executor has run the jobs that were posted before, by any
/// thread. Jobs of a higher priority, and with an earlier deadline where a pool orders by deadlines, always run before it.
///
/// Suspends  always, into the queue of its executor. An inline executor has a queue for jobs that are posted inside a job.
/// Cancel    a task that was told to stop ends here.
/// Threads   on a pool the task goes behind all jobs in its worker's queue, and behind the oldest 64 jobs in the pool's queue:
///           of n jobs there, the last one is overtaken at most n / 64 times. Jobs behind one that runs for long on another
///           worker are stolen, 64 at a time, after some 1500 jobs of this worker for each other worker.
inline detail::yielding yield() noexcept { return {}; }

}  // namespace weft

// Going on somewhere else: resume_on, start_on, continue_on and yield.
//
//     w::task<picture> draw(scene what) {
//       co_await w::resume_on(gui);  // until draw() ends; whoever awaits it goes on where he was
//       co_return paint(what);
//     }
//     auto answer = co_await w::start_on(workers, think());  // all of think() on the pool
//
// Nobody who awaits a task finds himself elsewhere: a task that has hopped goes home as it ends. A hop under way is not
// stopped, since a job in an executor's queue can't be taken out; the next wait behind it is a stop point. How that is done
// is told in detail/task/hop.hpp.
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

/// `co_await resume_on(ex);` has this task go on on `ex`, until it returns, throws or is stopped; whoever awaits it goes on
/// on its own executor. What this task calls meanwhile runs on `ex`, too.
///
/// In an async_generator the body goes on on `ex` until it ends, whoever asks: at each co_yield it comes home to its
/// consumer's executor, and when the next value is asked for it hops again. A body that ends, fails or is stopped comes
/// home, too; one that is dropped between two values is destroyed where that is done.
///
/// Suspends  unless it is on `ex` already.
/// Cancel    ends stopped without a hop. A stop that comes while the task is under way takes effect at its next wait.
/// Fails     std::bad_alloc; the task is then where it was.
/// Lifetime  `ex` outlives the task.
/// Cost      one block of frame memory, and a post each way; in an async_generator for each value.
inline detail::hop resume_on(executor& ex) noexcept { return detail::hop{ex}; }

/// Runs an awaitable on `ex` from its beginning; who awaits this stays where it is. `t | start_on(ex)` is the same.
/// Otherwise as resume_on, with one frame more.
template <detail::awaitable_argument Awaitable>
WEFT_COROUTINE_TAKES_OVER auto start_on(executor& ex, Awaitable&& work) {
  return detail::start_on_in_task<Awaitable>(ex, std::forward<Awaitable>(work));
}
template <int = 0>
void start_on(detail::given<executor&>, detail::refused<>);
inline auto start_on(executor& ex) noexcept { return detail::make_adaptor<detail::start_on_kind>(&ex); }

/// `x | continue_on(ex)`: awaits x here, then has the task that awaits this go on on `ex`, as by resume_on. In a pipe it is
/// what follows that runs there: `read(file) | continue_on(workers) | then(parse)`.
///
/// Cancel  as x. Once x has completed, its value is not lost: the hop is no stop point.
inline auto continue_on(executor& ex) noexcept { return detail::make_adaptor<detail::continue_on_kind>(&ex); }

/// `co_await yield();` lets others run: this task goes on when its executor has run what was posted to it before, from
/// wherever. More urgent jobs, and those with an earlier deadline where a pool goes by deadlines, come before it anyway.
///
/// Suspends  always, into its executor's queue; an inline executor has one for what is posted inside a job.
/// Cancel    a task that was told to stop ends here.
/// Threads   on a pool of several, the others run meanwhile what they have taken. The task goes behind all that waits on its
///           thread, and behind the oldest 64 jobs that no thread has taken: of n that came from outside, the last one is
///           passed n / 64 times at most. What waits on a thread that is at one job for long is taken over, 64 jobs at a
///           time, after some 1500 jobs of this one for each other thread.
inline detail::yielding yield() noexcept { return {}; }

}  // namespace weft

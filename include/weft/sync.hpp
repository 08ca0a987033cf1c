// Synchronization primitives: mutex, shared_mutex, semaphore, event, auto_event, latch, barrier, condition_variable, once,
// guarded, token_bucket.
//
// The same primitives serve tasks, fibers and plain threads: `co_await m.lock()` in a task, `await(m.lock())` in a fiber,
// `sync_wait(m.lock())` on a thread. A waiter's place in line lies in its own frame, so primitives do not allocate and have a
// constant size. A wait in a condition_variable, a call of a once and a take of a token_bucket are tasks, which have a frame.
//
// What holds for all of them:
//
//   Suspends   only where it can't complete at once; resumes on its own executor, in the order of arrival.
//   Cancel     a stopped waiter leaves the line and gets nothing. If it was given something before the stop, it has that, so no
//              permit is lost. A task that was told to stop ends at the await, also if it need not wait.
//   Deadline   `timeout(5ms, m.lock())`, as for anything that can be awaited.
//   Threads    any.
//   Lifetime   a primitive outlives its waiters and its guards: destroyed with a waiter in line, it ends the program with a
//              sentence.
//   Order      what was done before a release is visible to the next one that acquires.
//   Cost       a mutex that nobody waits for is locked and unlocked by one atomic read-modify-write each. All others take a
//              spin lock of one byte for a few instructions. A waiter is also parked, and posted to its executor when it is
//              woken.
//
// A lock is given back by the destructor of its guard, so also when a task is stopped.
//
// A release hands what it releases to the first in line, who owns it before it runs: nobody overtakes, and nobody starves. The
// mutex is an exception, a barging mutex: it is free until the woken waiter runs, so running tasks can take it meanwhile, and
// no convoy forms behind a waiter that is not scheduled yet. A waiter that was overtaken returns to the front of the line, and
// the next release hands the mutex to it.
//
// Each has a header of its own, and this one includes all of them.
#pragma once

#include <weft/barrier.hpp>
#include <weft/condition_variable.hpp>
#include <weft/event.hpp>
#include <weft/guarded.hpp>
#include <weft/latch.hpp>
#include <weft/mutex.hpp>
#include <weft/once.hpp>
#include <weft/semaphore.hpp>
#include <weft/shared_mutex.hpp>
#include <weft/sync_stats.hpp>
#include <weft/task.hpp>
#include <weft/token_bucket.hpp>

// What work shares and waits for: mutex, shared_mutex, semaphore, event, auto_event, latch, barrier, condition_variable,
// once, guarded, token_bucket.
//
// There is one of each for tasks, fibers and plain threads: `co_await m.lock()` in a task, `await(m.lock())` in a fiber,
// `sync_wait(m.lock())` on a thread. Whoever waits has its place in line in its own frame, so no primitive allocates, and
// each is of constant size. A wait in a condition_variable, a call of once and a take of a token_bucket are tasks, which
// have a frame.
//
// What holds for all of them:
//
//   Suspends   only where it has to; resumes on its own executor, in the order of arrival.
//   Cancel     leaves the line empty-handed. What was given already wins, so that no permit is lost. A task that was told
//              to stop ends at the await, even if it would not have to wait.
//   Deadline   `timeout(5ms, m.lock())`, as for anything that can be awaited.
//   Threads    any.
//   Lifetime   outlives its waiters and what it gave out: destroyed with somebody in line, it ends the program.
//   Order      what was done before a release is seen by whoever acquires next.
//   Cost       the mutex is taken and given back by one atomic read-modify-write each where nobody waits. All else takes a
//              lock of one byte for a few instructions, and who waits or is woken is parked or posted besides. What else
//              an operation costs is said there.
//
// A lock is given back by the destructor of what `lock()` gives, and so when a task is stopped, too.
//
// A release gives what it releases to the first in line, who owns it before it runs: nobody overtakes, and nobody starves.
// But for a mutex, which is a barging one: it is free until the one that was woken runs, so that those that run take it and
// give it back as often as they like, and no convoy forms behind one that is not scheduled yet. Who was overtaken goes back
// to the front of the line, and is handed the mutex by the next release.
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

// Chaos: with WEFT_CHAOS=<seed> in the environment, any program that uses weft gets schedules that are rare but allowed. A
// thread that parks, wakes or stops a sleeper often yields or sleeps for a moment, in the middle of its protocol. And about
// half of the wake-ups of tasks that have an executor, and of threads, come late, from another thread. A task without an
// executor is promised to go on inside the call that wakes it, and does.
//
// Code that runs an executor by hand expects to find there all that was woken before. So when such an executor has run
// empty, the delayed wake-ups are made: it gets the same jobs as without chaos, in another order. The same holds for a pool
// that is about to end, since it runs what its jobs have woken.
//
// The environment is read once, with the first worker. Without the variable nothing is installed: see wait_watch.
//
// Rejected: taking jobs out of the executors' queues and putting them back elsewhere, which would have each executor ask
// before each job.
#pragma once

namespace weft::detail {

/// Begins it, if the environment says so. Once a process.
void begin_chaos_if_asked() noexcept;

}  // namespace weft::detail

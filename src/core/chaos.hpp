// Chaos: WEFT_CHAOS=<seed> in the environment of any program that uses weft has its waits go otherwise than they usually
// do, within what is promised. Whoever parks, wakes or stops gives way or sleeps for a moment first, in the middle of its
// protocol; and every other wake-up of a task that has an executor, or of a thread, comes late, from another thread. A task
// without an executor is promised to go on inside the call that wakes it, and does.
//
// Who pumps an executor by hand relies on finding there what was woken before. So one that has run dry gets what is kept
// for later, in any order: it has everything as it would have without chaos, other than it would have. So does a pool that
// is about to end, which runs what its jobs have woken.
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

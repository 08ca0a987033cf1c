// The flight recorder: what each thread has done last, to be read after something went wrong.
//
// Each thread that uses weft has a ring of 1 MiB, in which its newest events take the place of its oldest. Always recorded
// is what is slow anyway: steals, sleeps and wake-ups of workers, calls from one thread to another, stops with their cause,
// deadlines that have passed, failures of I/O, stalls. What is fast, as a switch or a fork, is recorded of traced requests
// alone: see traced.hpp.
//
//     w::save_recording_on_crash("/var/tmp/shop.weft");
//     ...
//     w::save_recording("/var/tmp/shop-now.weft");
//
// `weft trace FILE` makes of a file what Perfetto (ui.perfetto.dev) and Chrome show: see recording.hpp, which also says what is
// in a file. `weft trace PID` does so with a process that runs, which need not save anything.
//
// Cost      an event is four stores, and mostly a time stamp. Pages of a ring that were never written to take no memory.
#pragma once

#include <cstddef>

namespace weft {

/// Writes what all threads have recorded into a file, in place of what was there. They run on meanwhile.
///
/// Fails    throws error, where the file can't be made or written.
/// Threads  any. Blocks: some milliseconds, and more where many functions are named for the first time.
void save_recording(const char* path);

/// From now on, a process that crashes writes the file first: at SIGSEGV, SIGBUS, SIGILL, SIGFPE and SIGABRT, which also ends a
/// program in which weft finds a contract broken. What handled the signal before is called then. Null: no longer.
///
/// Asked for by the program, since a library that sets handlers of signals by itself meets others that do so.
///
/// Fails    throws error, where the path has 4096 bytes or more.
/// Threads  any, but one at a time; before other threads crash. The handler allocates nothing and takes no lock.
void save_recording_on_crash(const char* path);

/// From now on, the file is written when deadlocks are found that were not known before. Null: no longer.
/// Fails    as save_recording_on_crash().
void save_recording_on_deadlock(const char* path);

/// How many bytes a thread's ring has that records its first event after this call: a power of two from 2048 to 2^30, to which
/// others are rounded down or up. 0: such threads record nothing.
void set_recorder_bytes(std::size_t bytes_per_thread) noexcept;

namespace detail {
/// Writes the file of save_recording_on_deadlock(), if there is to be one. False: there is none, or it can't be written.
bool save_recording_of_deadlock() noexcept;
}  // namespace detail

}  // namespace weft

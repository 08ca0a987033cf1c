// The flight recorder: keeps the latest events of each thread, to be read after something went wrong.
//
// Each thread that uses weft has a ring buffer of 1 MiB, in which its newest events overwrite its oldest. What is slow anyway
// is always recorded: steals, sleeps and wake-ups of workers, calls from one thread to another, stops with their cause,
// deadlines that have passed, failures of I/O, stalls. What is fast, such as a switch or a fork, is recorded for traced
// requests only: see traced.hpp.
//
//     w::save_recording_on_crash("/var/tmp/shop.weft");
//     ...
//     w::save_recording("/var/tmp/shop-now.weft");
//
// `weft trace FILE` converts a file to what Perfetto (ui.perfetto.dev) and Chrome show: see recording.hpp, which also has the
// format of the file. `weft trace PID` does the same with a running process, which need not save anything.
//
// Cost      an event is four stores, and in most cases a time stamp. Pages of a ring that were never written to take no memory.
#pragma once

#include <cstddef>

namespace weft {

/// Writes what all threads have recorded to a file, and replaces what was in that. The threads run on meanwhile.
///
/// Fails    throws weft::error if the file can't be made or written.
/// Threads  any. Blocks for some milliseconds, or longer where many functions are named for the first time.
void save_recording(const char* path);

/// From now on, a process that crashes first writes the file: on SIGSEGV, SIGBUS, SIGILL, SIGFPE and SIGABRT. SIGABRT also ends
/// a program in which weft finds a broken contract. Then the handler that the signal had before is called. Null turns this off.
///
/// The program has to ask for it, since a library that installs signal handlers by itself conflicts with others that do the
/// same.
///
/// Fails    throws weft::error if the path has 4096 bytes or more.
/// Threads  any, but one at a time, and before other threads can crash. The handler allocates nothing and takes no lock.
void save_recording_on_crash(const char* path);

/// From now on, the file is written when a watchdog or an observer finds new deadlocks. Null turns this off.
/// Fails    as save_recording_on_crash().
void save_recording_on_deadlock(const char* path);

/// Sets the size of the rings of threads that record their first event after this call, in bytes: a power of two from 2048 to
/// 2^30, to which other sizes are rounded down or up. 0: such threads record nothing. Threads: any.
void set_recorder_bytes(std::size_t bytes_per_thread) noexcept;

namespace detail {
/// Writes the file of save_recording_on_deadlock(). False: none was asked for, or it can't be written.
bool save_recording_of_deadlock() noexcept;
}  // namespace detail

}  // namespace weft

// The watchdog: reports workers that are held up, and deadlocks. A task that blocks its thread, or computes for very long,
// holds up all jobs that wait behind it; nothing else reports that, since the program is neither idle nor stuck. And tasks that
// wait for each other in a circle leave a program idle that should not be.
//
//     w::watchdog dog{{.stall_after = 100ms}};  // prints them; or calls .on_stall and .on_deadlock instead
//
// A thread of its own looks at the workers of all pools and runtimes every few milliseconds while any of them is awake. Once
// all have gone to sleep, it looks for deadlocks, and then sleeps, too.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <weft/async_frame.hpp>
#include <weft/items.hpp>
#include <weft/snapshot.hpp>

namespace weft {

/// A stall: a worker that has been at one job for too long.
struct stall {
  std::uint32_t thread = 0;           ///< the kernel's id, as `top -H` shows it
  unsigned worker = 0;                ///< its index in its pool
  std::chrono::nanoseconds lasted{};  ///< for how long, so far
  std::size_t waiting = 0;            ///< jobs in this worker's own queues, which idle workers may steal
  long system_call = -1;              ///< the number of its system call; -1: it computes, or waits for a page
  const char* system_call_name = "";  ///< "read"; empty if weft does not know it
  /// The functions on its thread's stack, innermost first. For a thread in a system call it is a guess: all that looks like a
  /// return address, since the thread can't be asked without disturbing the call. Empty: it did not answer.
  items<async_frame> stack;
  bool is_exact = true;            ///< false: `stack` is a guess
  items<async_frame> async_stack;  ///< of its task, as async_stack() gives it; empty: no task
};

/// Writes several lines, for people.
std::ostream& operator<<(std::ostream& out, const stall& what);

struct watchdog_options {
  /// How long a job may take. The time for which the kernel ran other threads in its place does not count.
  std::chrono::milliseconds stall_after{50};
  /// Called on the watchdog's thread, and must not throw. Null: it prints the stall to stderr.
  void (*on_stall)(const stall& what, void* with) = nullptr;
  void* with = nullptr;
  /// At most one stall is reported in this time; others are only counted. Each job is reported once.
  std::chrono::milliseconds at_most_every{1000};
  /// How often a second it records in the flight recorder where each computing worker is; 0: never; 1000 at most.
  unsigned samples_a_second = 0;
  /// Whether it looks for deadlocks once all workers have gone to sleep, by a snapshot without stacks, and reports those that
  /// are new, also by the file of save_recording_on_deadlock(). At most once a second, and for a hundredth of a processor's time.
  bool deadlocks = true;
  /// Called on the watchdog's thread, with a snapshot that has stacks and at least one new deadlock; must not throw. Null: it
  /// prints all deadlocks to stderr.
  void (*on_deadlock)(const snapshot& what, void* with) = nullptr;
};

struct watchdog_stats {
  std::uint64_t looks = 0;   ///< at all workers
  std::uint64_t stalls = 0;  ///< found, also those that were not reported
  std::uint64_t reported = 0;
  std::uint64_t samples = 0;
  std::uint64_t searches = 0;   ///< for deadlocks
  std::uint64_t deadlocks = 0;  ///< found; each counts once
};

/// Watches all workers of the process while it lives.
///
/// A worker in a system call is never disturbed: /proc says which call that is. One that computes is sent SIGPROF, which weft's
/// threads leave unblocked, and whose handler unwinds the thread's stack. SIGPROF from elsewhere is passed to the handler that
/// there was before. A worker that enters a system call in the few microseconds between the look at /proc and the signal may
/// see the call fail early with EINTR, if signals end that call in spite of SA_RESTART (nanosleep, epoll_wait).
///
/// Needs    /proc. For stacks of threads that compute, an unwinder that may run in a signal handler: libgcc's with glibc 2.35
///          or later; others at the program's own risk.
/// Threads  one watchdog at a time in a process: a second one throws. A child of fork() has none, and may make its own.
/// Fails    the constructor throws weft::error if the system gives no thread, and with std::errc::device_or_resource_busy if
///          there is a watchdog already.
/// Cost     for each worker that is awake, some microseconds, four times in `stall_after`. A search for deadlocks costs what a
///          snapshot does. Nothing while all workers sleep.
class watchdog {
 public:
  explicit watchdog(watchdog_options options = {});  ///< starts the thread
  watchdog(const watchdog&) = delete;
  watchdog& operator=(const watchdog&) = delete;
  ~watchdog();

  watchdog_stats stats() const noexcept;  ///< since it was made. Any thread; takes no lock

 private:
  struct core;
  std::unique_ptr<core> core_;
};

}  // namespace weft

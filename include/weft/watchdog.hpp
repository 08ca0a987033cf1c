// The watchdog: who holds up a worker, and who waits for each other for ever. A task that blocks its thread, or computes without
// end, holds up all that waits behind it; nothing else says so, for the program is neither idle nor stuck. Tasks that wait for
// each other in a circle leave a program idle that should not be.
//
//     w::watchdog dog{{.stall_after = 100ms}};  // prints; .on_stall and .on_deadlock are told instead
//
// One thread of its own looks at the workers of all pools and runtimes every few milliseconds while one of them is awake. Once
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

/// A worker that has been at one job for too long.
struct stall {
  std::uint32_t thread = 0;           ///< the kernel's number, as `top -H` shows it
  unsigned worker = 0;                ///< which of its pool's
  std::chrono::nanoseconds lasted{};  ///< so far
  std::size_t waiting = 0;            ///< jobs in this worker's own queues, which idle workers may take over
  long system_call = -1;              ///< the one that it is in, by its number; -1: it computes, or waits for a page
  const char* system_call_name = "";  ///< "read"; empty where it has none here
  /// The functions on its thread's stack, innermost first. Of one that is in a system call a guess: what looks like a return
  /// address, since the thread can't be asked without disturbing the call. Empty: it did not answer.
  items<async_frame> stack;
  bool is_exact = true;            ///< false: a guess
  items<async_frame> async_stack;  ///< who awaits whom, as async_stack() gives it; empty: no task
};

/// Several lines, for people.
std::ostream& operator<<(std::ostream& out, const stall& what);

struct watchdog_options {
  /// Without the time for which the kernel ran other threads in its place.
  std::chrono::milliseconds stall_after{50};
  /// Called on the watchdog's thread, and must not throw. Null: it prints the stall to stderr.
  void (*on_stall)(const stall& what, void* with) = nullptr;
  void* with = nullptr;
  /// At most one stall is reported in so long; the others are counted. A job is reported once.
  std::chrono::milliseconds at_most_every{1000};
  /// How often a second it records, in the flight recorder, where each worker is that computes; 0: never, 1000 at most.
  unsigned samples_a_second = 0;
  /// Whether it takes a snapshot without stacks once all workers have gone to sleep, and tells of circles in it that it has not
  /// told of; also by the file of save_recording_on_deadlock(). At most once a second, and for a hundredth of the time.
  bool deadlocks = true;
  /// Called on the watchdog's thread with a snapshot that has stacks, and a circle that is new; must not throw. Null: it prints
  /// all circles to stderr.
  void (*on_deadlock)(const snapshot& what, void* with) = nullptr;
};

struct watchdog_stats {
  std::uint64_t looks = 0;   ///< at all workers
  std::uint64_t stalls = 0;  ///< also those that were not reported
  std::uint64_t reported = 0;
  std::uint64_t samples = 0;
  std::uint64_t searches = 0;   ///< for deadlocks
  std::uint64_t deadlocks = 0;  ///< found, each counted once
};

/// Watches while it lives.
///
/// A worker in a system call is never disturbed: which call, the kernel says in /proc. One that computes is sent SIGPROF,
/// which weft's threads leave unblocked, and whose handler lists its own calls; SIGPROF that comes from elsewhere goes to the
/// handler that there was before. A worker that enters a system call in the few microseconds between that look and the signal
/// may see the call end early, with EINTR, if it is one that signals end in spite of SA_RESTART (nanosleep, epoll_wait).
///
/// Needs    /proc. For stacks of what computes, an unwinder that may run in a handler: libgcc's with glibc 2.35 or later, or
///          another program's own risk.
/// Threads  one at a time in a process: a second one throws. A forked child has none, and may make its own.
/// Fails    throws error where the system gives no thread, or std::errc::device_or_resource_busy where there is one already.
/// Cost     a look is some microseconds a worker that is awake, four times in `stall_after`. A search for deadlocks costs what a
///          snapshot does. Nothing while all workers sleep.
class watchdog {
 public:
  explicit watchdog(watchdog_options options = {});  ///< starts its thread
  watchdog(const watchdog&) = delete;
  watchdog& operator=(const watchdog&) = delete;
  ~watchdog();

  watchdog_stats stats() const noexcept;  ///< since it was made; any thread

 private:
  struct core;
  std::unique_ptr<core> core_;
};

}  // namespace weft

// An event of the flight recorder; see recorder.hpp.
#pragma once

#include <cstdint>
#include <weft/detail/base/narrow.hpp>

namespace weft {

/// What has happened. Files have these numbers, so none is ever reused for something else.
enum class event_kind {
  // What is always recorded: waits of threads, and what one thread does to another.
  thread = 1,       ///< this thread writes here from now on; number: the kernel's number; first: of the one before
  sleep = 2,        ///< the worker falls asleep, or a thread in sync_wait; number: which worker, or no_worker
  wake_up = 3,      ///< it is awake again; number: 1 if another thread has woken it
  call_thread = 4,  ///< it wakes another worker; number: that one's thread
  steal = 5,        ///< number: how many jobs; first: from which thread
  stop = 6,         ///< first: the scope, task or pool; second: why, a text; number: the line that asked for it, or 0
  deadline = 7,     ///< a deadline has passed; first: the scope; second: in which file it was set; number: the line.
                    ///< Or the time of a timeout(): first: 0; second: "timeout()"; number: 0
  stall = 8,        ///< number: the thread that is at one job for long; first: for how long, in ns; second: where it is
  io_error = 9,     ///< number: errno; first: the descriptor, ~0: none yet; second: what was tried, a text
  take_over = 10,   ///< more workers may be awake, in the place of some that block or stand; number: how many more
  sample = 11,      ///< number: the thread that runs; first: its root; second: where it is
  // What is recorded of traced requests.
  trace_begins = 32,  ///< number: the request; first: its root; second: its name, a text
  trace_ends = 33,    ///< number: the request; first: its root
  turn_begins = 34,   ///< number: the request; first: the root that runs from now on; second: where it goes on
  turn_ends = 35,     ///< number: the request; first: the root
  wake = 36,          ///< a wait has ended; first: the root that waited; second: what it waited for, a text
  fork = 37,          ///< first: the new root; second: its parent; number: the request
};

/// The `number` of a `sleep` event of a thread that is no worker.
inline constexpr std::uint32_t no_worker = ~std::uint32_t{0};

/// Bits of recorded_event::flags.
struct turn_flags {
  static constexpr std::uint16_t first =
      1;  ///< of a begin: this root has not run before; an older one of its address ended
  static constexpr std::uint16_t goes_on = 2;      ///< of a begin: a child has run on its stack meanwhile
  static constexpr std::uint16_t interrupted = 4;  ///< of an end: it was not about to wait
  static constexpr std::uint16_t ended = 8;        ///< of an end: the root has ended
};

/// An event as it is stored in a thread's ring, and in a file, where it is little endian.
struct recorded_event {
  std::uint64_t when;  ///< in ticks; the header of a file gives their length
  detail::narrow<event_kind, std::uint16_t> kind;
  std::uint16_t flags;
  std::uint32_t number;
  std::uint64_t first;
  std::uint64_t second;
};
static_assert(sizeof(recorded_event) == 32);

}  // namespace weft

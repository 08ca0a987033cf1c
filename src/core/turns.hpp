// Turns of traced roots, and events for the flight recorder.
//
// A root is traced while its env has frames from a source with a trace: with_trace() makes one, and whatever is started below
// inherits it with the env. So nothing is added to what an untraced root passes: each place where a root begins to run looks
// whether it has such a source already.
//
// A turn is the time for which a root runs on one thread, from where it is resumed to where it waits or ends. A thread is in
// one turn at most: a fork that runs at once, on its parent's stack, ends the parent's turn, which begins again behind it.
// The end of a turn has the time at which the root was last about to wait. That is taken before the wait can end, so no other
// thread begins the next turn of this root before that time: begin and end alternate for each root. (Taken behind the wait,
// it would come too late where another thread was faster.) Where that wait had nothing to wait for, the rest of the turn is
// in no turn.
//
// What ends a turn late, when the root may be gone, writes an event and touches nothing else of it.
#pragma once

#include <cstdint>
#include <weft/detail/core/root.hpp>

#include "base/stamp.hpp"
#include "core/worker.hpp"
#include "trace/event_ring.hpp"

namespace weft::detail {

class request_trace;

/// The calling thread's ring; null: there is none.
event_ring* ring_of(worker& here) noexcept;

/// Writes an event into it.
void record_at(worker& here, std::uint64_t when, event_kind kind, std::uint32_t number, std::uint64_t first = 0,
               std::uint64_t second = 0, std::uint16_t flags = 0) noexcept;
inline void record(event_kind kind, std::uint32_t number, std::uint64_t first = 0, std::uint64_t second = 0) noexcept {
  record_at(this_worker(), stamp_now(), kind, number, first, second);
}
inline std::uint64_t as_number(const void* address) noexcept { return reinterpret_cast<std::uintptr_t>(address); }

/// A system call on a descriptor has failed; -1: on none yet. `what` was tried: a text of the program's.
inline void record_io_error(int error, int descriptor, const char* what) noexcept {
  record(event_kind::io_error, static_cast<std::uint32_t>(error), static_cast<std::uint64_t>(descriptor),
         as_number(what));
}

/// `self`, which is traced, runs from now on; `from_queue`: an executor has run it. Ends the turn that this thread was in.
void begin_turn(worker& here, root& self, request_trace& of, bool from_queue) noexcept;

/// `self` is posted for its first turn, so that it is known how long it waited for that.
inline void note_post(root& self) noexcept {
  self.traced_since = stamp_now();
  self.before_wait |= root::was_posted;
}

/// Ends the turn that this thread is in, if any: the root has suspended or ended, and may be gone.
void end_turn(worker& here) noexcept;

/// The root that runs has ended, or ends here what it is traced for; it and what it is traced by are there.
void end_turn_of(worker& here, const root& self, std::uint16_t flags) noexcept;

/// `self`, which is traced, has lent its root to a child that waits, and so waits now, too. Not `is_old`: its root is new.
void note_wait_of_borrower(worker& here, root& self, bool is_old) noexcept;

/// The wait of `self`, which is traced, has ended, and it will be posted.
void has_woken(worker& here, root& self) noexcept;

/// How long what runs has run, by the ticks of stamps, since that was last counted in its request's ledger.
std::uint64_t running_not_counted(const worker& here) noexcept;

/// What runs has read or written so many bytes.
void count_io_of_trace(worker& here, std::size_t bytes) noexcept;
inline void count_io(std::size_t bytes) noexcept {
  if (worker* const here = worker_of_thread; here != nullptr && here->frames.memory != nullptr) [[unlikely]]
    count_io_of_trace(*here, bytes);
}

/// What a run inside of a traced root's turn puts back.
struct outer_turn {
  explicit outer_turn(const worker& here) noexcept
      : open{here.traces.may_suspend == 0 ? here.traces.open : nullptr}, part{here.traces.part}, of{here.traces.of} {}
  /// Ends the turn of what has run inside, and begins that of the outer root again.
  void go_on(worker& here) const noexcept;

  const void* open;
  trace_part* part;
  std::uint32_t of;
};

}  // namespace weft::detail

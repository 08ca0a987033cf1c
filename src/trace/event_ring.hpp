// The flight recorder's memory: of each thread that uses weft, the last events, in a ring of a fixed size. Only its thread
// writes into a ring, and waits for nobody; any thread, also a signal handler in a process that crashes, may copy a ring
// meanwhile.
//
//   writer  writes an event's words, each with `release`, then moves `next` on
//   reader  reads `next`, copies words, each with `acquire`, and reads `next` again: what the writer may have begun to write
//           over by then is left out. A word of a newer event carries what `next` was before that event was begun, so a reader
//           that has seen one knows which places of the ring are too old.
//
// Rejected: a lock a ring (a crash may come while it is held), one ring for all threads (a read-modify-write an event).
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <new>
#include <weft/detail/base/atomic.hpp>
#include <weft/recorded_event.hpp>

#include "trace/stamp_pair.hpp"

namespace weft::detail {

/// The ring itself, over memory of others. `Places` is a power of two.
class event_ring {
 public:
  static constexpr std::size_t words = sizeof(recorded_event) / sizeof(std::uint64_t);
  static constexpr std::size_t fewest = 64;  // events

  event_ring(atomic<std::uint64_t>* memory, std::size_t places) noexcept : words_{memory}, mask_{places - 1} {}
  event_ring(const event_ring&) = delete;

  /// By its thread.
  void write(std::uint64_t when, event_kind kind, std::uint16_t flags, std::uint32_t number, std::uint64_t first,
             std::uint64_t second) noexcept {
    const std::uint64_t at = next_.load(std::memory_order_relaxed);  // its thread's own
    atomic<std::uint64_t>* const to = words_ + (at & mask_) * words;
    to[0].store(when, std::memory_order_release);  // -> lap
    to[1].store(static_cast<std::uint64_t>(kind) | std::uint64_t{flags} << 16 | std::uint64_t{number} << 32,
                std::memory_order_release);          // -> lap
    to[2].store(first, std::memory_order_release);   // -> lap
    to[3].store(second, std::memory_order_release);  // -> lap
    next_.store(at + 1, std::memory_order_release);  // -> event
  }

  std::size_t places() const noexcept { return mask_ + 1; }
  /// How many events were ever written.
  std::uint64_t written() const noexcept { return next_.load(std::memory_order_acquire); }  // <- event

  /// Any thread: copies what is there from event `from` on, `room` events at most. Returns how many; moves `from` up to the
  /// first one that was copied, since older ones may be gone.
  std::size_t copy(std::uint64_t& from, recorded_event* into, std::size_t room) const noexcept {
    const std::uint64_t end = written();
    from = std::max(from, oldest(end));
    if (from >= end) return 0;
    const std::size_t count = static_cast<std::size_t>(std::min<std::uint64_t>(end - from, room));
    for (std::size_t i = 0; i != count; ++i) {
      const atomic<std::uint64_t>* const at = words_ + ((from + i) & mask_) * words;
      std::uint64_t one[words];
      for (std::size_t word = 0; word != words; ++word) one[word] = at[word].load(std::memory_order_acquire);  // <- lap
      into[i] = {one[0],
                 static_cast<event_kind>(one[1] & 0xffff),
                 static_cast<std::uint16_t>(one[1] >> 16),
                 static_cast<std::uint32_t>(one[1] >> 32),
                 one[2],
                 one[3]};
    }
    const std::uint64_t gone = oldest(written());
    if (gone <= from) return count;
    const std::size_t lost = static_cast<std::size_t>(std::min<std::uint64_t>(gone - from, count));
    std::copy(into + lost, into + count, into);
    from += lost;
    return count - lost;
  }

  event_ring* made_before = nullptr;  // link in the list of all; none is ever taken out
  /// By a thread that takes the ring over, from one that has ended.
  void begin_as_this_thread() noexcept;

  /// The kernel's number of the thread that writes here. A figure, no edge.
  atomic<std::uint32_t> thread{0};

  /// When it was made, before others could see it. For who reads a core file, in which no other pair of a stamp and a time is.
  stamp_pair made;

 private:
  friend struct debug_rings;
  // The oldest event that is whole when `end` were written: the writer may be at the next one.
  std::uint64_t oldest(std::uint64_t end) const noexcept { return end > mask_ ? end - mask_ : 0; }

  //   edge event  an event's words                                ->  who reads `next` behind it
  //   edge lap    what `next` was before an event was begun       ->  who has read a word of that event
  atomic<std::uint64_t>* words_;
  std::size_t mask_;
  atomic<std::uint64_t> next_{0};
};

/// Makes one for the calling thread. Null: there is no memory, or the program wants none.
event_ring* make_ring() noexcept;

/// The ring that was made last; the others by `made_before`.
event_ring* newest_ring() noexcept;

/// How large rings are that are made from now on, in bytes; 0: none is made.
void set_ring_bytes(std::size_t bytes) noexcept;

/// As the program began.
const stamp_pair& first_stamp() noexcept;

/// How long a tick of a stamp is.
struct stamp_scale {
  double nanoseconds_a_tick = 1;
  /// By what has passed since the program began: the longer, the more exact.
  static stamp_scale now() noexcept;
  std::uint64_t nanoseconds(std::uint64_t ticks) const noexcept {
    return static_cast<std::uint64_t>(static_cast<double>(ticks) * nanoseconds_a_tick);
  }
};

/// Frees all rings, where the library is unloaded.
void end_rings() noexcept;

}  // namespace weft::detail

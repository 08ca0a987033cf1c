// A worker's heap: where its frames lie, and how those that others freed come home. What a frame costs stands in
// memory/frame_memory.hpp.
//
//   owner   takes from a class's list, else cuts from the current slab; puts back, or moves `bump` down again
//   others  put blocks into `returned`, some together, which the owner takes all at once where it needs a slab, and before
//           a sweep. What one of them has not sent yet, it sends before it sleeps or ends, so few blocks of one heap at a
//           time lie with each
//   drain   by any of those, when much waits there: takes all, finds the slabs of which everything that was cut is in its
//           hand, which so nobody else can have, and puts the rest back. The owner may be idle for ever
//   age     by a thread that is about to sleep, and once a second while it sleeps: sweeps its own lists if they have been
//           long for a second, and drains what it has sent to others
//
// A sweep, or a drain, finds the slabs that are whole at that moment. A peak that ends leaves most of them with one frame
// alive for a while, so what one of them left is looked at again as soon as anything else was freed. By the amount freed
// alone that would not do: the last frames of many slabs are few bytes. So time decides; a walk over many blocks is
// repeated after a longer time, which bounds its share of the processor.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <weft/detail/base/atomic.hpp>
#include <weft/detail/base/inbox.hpp>
#include <weft/detail/base/lock.hpp>
#include <weft/detail/memory/frame_memory.hpp>

#include "memory/slabs.hpp"

namespace weft::detail {

/// One worker's frames. Touched by its own thread only, but for what stands below `returned`.
struct heap : frame_front {
  static constexpr std::size_t granule = frame_granule;
  static constexpr std::size_t small = small_frame;  // up to here a class every 32 bytes
  static constexpr std::size_t large = large_frame;  // up to here four classes a doubling; above: operator new
  static constexpr std::size_t classes = frame_classes;
  // Bytes in free lists: more is swept when it has lain there for a second; and so much at once.
  static constexpr std::size_t keep = std::size_t{32} << 20, keep_for_a_second = std::size_t{128} << 20;
  // In milliseconds: how long blocks must have been many before they are walked over, and again after a walk over `blocks`.
  static constexpr long patience_after(std::size_t blocks) noexcept {
    return std::max(1000L, static_cast<long>(blocks / 500));  // some 20 ns each: a hundredth of the time
  }

  std::byte* base = nullptr;                 // of the current slab, as `bump`; null: there is none
  std::byte* below = nullptr;                // the top of the slab before it
  std::size_t freed = 0;                     // bytes that were ever put into lists
  std::size_t swept_at = 0;                  // what that was at the last sweep
  std::size_t look_at = keep;                // when so many were, one looks how much is cached, and for how long
  std::size_t too_many = keep_for_a_second;  // or twice what the last sweep left
  long many_since = 0;  // in milliseconds; 0: they are few, or nobody has looked since the last sweep
  long patience = patience_after(0);

  // Small blocks of another heap that are to go home together: its own thread's.
  heap* sends_to = nullptr;
  free_block* newest_to_send = nullptr;
  free_block* oldest_to_send = nullptr;
  std::size_t bytes_to_send = 0;
  unsigned blocks_to_send = 0;
  bool sent_much = false;  // to a heap where much waits, so it is to be drained when time has passed
  static constexpr unsigned most_together = 16;

  // Blocks that other workers freed.
  inbox<free_block> returned;               // its edge: the last use of the block  ->  who hands it out again
  atomic<std::size_t> waiting{0};           // bytes in there. A count, no edge: at least what one can find there
  atomic<std::size_t> drain_at{keep};       // so many are enough to look for whole slabs. A hint, no edge
  atomic<std::size_t> keeps_waiting{keep};  // what `drain_at` is at least. The same
  // What the last drain left there, and nothing was taken since. A hint, no edge: as long as no more waits, the next one
  // would find nothing.
  atomic<std::size_t> stayed{0};
  atomic<std::size_t> held{0};  // slabs. Written under `lock`; a count, no edge
  tiny_lock draining;           // held by who looks
  plain<long> drained_at = 0;   // in milliseconds, and how long the next one waits: under `draining`
  plain<long> drain_patience = 0;
  heap* made_before = nullptr;     // link in the list of all
  tiny_lock lock;                  // of the list, and of `current`; the owner alone adds to it
  plain<slab*> slabs = nullptr;    // all, the current one first
  plain<slab*> current = nullptr;  // the one that frames are cut from; null: none

  void* allocate_small(std::size_t bytes);  // a multiple of `granule`
  void* allocate(std::size_t size);         // above `small`, up to `large`
  void free(void* block, std::size_t bytes) noexcept;

  /// Sends home what was freed here and is another's.
  void send() noexcept {
    if (blocks_to_send != 0) send_all();
  }

  /// Gives back the slabs that hold no live frame.
  void sweep() noexcept;
  /// False: nothing was freed since the last one, so it would find none.
  bool is_worth_a_sweep() const noexcept {
    return freed != swept_at || waiting.load(std::memory_order_relaxed) != 0;  // a count
  }

  /// Sweeps if free blocks have been many for a second at `now`, in milliseconds. True: it has many slabs, of which others
  /// may free all frames, so ask again in a while.
  bool age(long now) noexcept;

  /// By any thread: gives back the slabs of which all that was cut waits in `returned`.
  void drain() noexcept;
  /// False: nothing came since the last one, so it would find none.
  bool is_worth_a_drain() const noexcept {
    return waiting.load(std::memory_order_relaxed) != stayed.load(std::memory_order_relaxed);  // as declared, both
  }
  /// The same if much waits there, more than the last one left, and that was some time before `now`. True: it has not been
  /// so long, so ask again in a while.
  bool drain_at_times(long now) noexcept;

  /// Its thread ends, or another one takes it over.
  void leave() noexcept;
  void take_over() noexcept;

  static constexpr std::size_t class_of(std::size_t size) noexcept {
    if (size <= small) return (size + granule - 1) / granule;
    const auto doubling =
        static_cast<std::size_t>(std::bit_width(size - 1) - std::bit_width(small));  // 0: to 2 * small
    const std::size_t quarter = (size - 1 - (small << doubling)) / (small / 4 << doubling);
    return small / granule + 1 + doubling * 4 + quarter;
  }
  static constexpr std::size_t bytes_of(std::size_t size_class) noexcept {
    constexpr std::size_t last_small = small / granule;
    if (size_class <= last_small) return size_class * granule;
    const std::size_t step = size_class - last_small - 1;
    return (small << (step / 4)) + (step % 4 + 1) * (small / 4 << (step / 4));
  }

 private:
  void* cut(std::size_t bytes, std::size_t size_class);
  void cut_from(slab* one, std::byte* at) noexcept;
  void free_below(void* block, std::size_t bytes) noexcept;
  void free_others(heap& home, void* block, std::size_t size_class, std::size_t bytes) noexcept;
  void send_all() noexcept;
  void deliver(heap& home, free_block& newest, free_block& oldest, std::size_t bytes) noexcept;
  void step_back(std::byte* block) noexcept;
  void look() noexcept;
  void look_later() noexcept;
  bool were_many_for_long(long now) noexcept;
  void take_returned() noexcept;
  void hand_in_lists() noexcept;
  std::size_t drain_under_lock() noexcept;
};

[[gnu::always_inline]] inline void* heap::allocate_small(std::size_t bytes) {
  return take(bytes, [&] { return cut(bytes, bytes / granule); });
}

inline void* heap::allocate(std::size_t size) {
  const std::size_t size_class = class_of(size), bytes = bytes_of(size_class);
  if (free_block* block = lists[size_class]) {
    lists[size_class] = block->next;
    cached -= bytes;
    return block;
  }
  if (bytes > static_cast<std::size_t>(end - bump)) return cut(bytes, size_class);
  return std::exchange(bump, bump + bytes);
}

[[gnu::always_inline]] inline void heap::free(void* block, std::size_t bytes) noexcept {
  if (!take_back(block, bytes)) free_below(block, bytes);
}

// ---- the calling thread's heap --------------------------------------------------------------------------------------------

/// The heap of the calling thread's worker; null before its first use.
[[gnu::tls_model("initial-exec")]] extern constinit thread_local heap* heap_of_thread;

/// What programs take frames from: that heap, or `no_front` where there is none. See frames_here().
[[gnu::tls_model("initial-exec")]] extern constinit thread_local frame_front* front_of_thread __asm__(
    "weft_frames_here");
/// Has nothing, and is never written.
extern constinit frame_front no_front;

/// Makes the calling thread's worker, whose heap it gives. Of core, as the next one.
WEFT_SELDOM heap& first_heap() noexcept;
/// The heap that was made last; the others by `made_before`. None is ever taken out.
heap* newest_heap() noexcept;

inline heap& this_heap() noexcept {
  if (heap_of_thread != nullptr) [[likely]]
    return *heap_of_thread;
  return first_heap();
}

/// The calling thread takes its frames from `here` from now on.
void begin_frame_memory(heap& here) noexcept;

/// Lets go of blocks and slabs that nobody has needed lately. True: there are more, so ask again in a while. By a thread
/// that is about to sleep.
bool age_frame_memory() noexcept;

/// The thread of `here` ends: its heap waits for the next one, and what it has sent to others is looked at.
void leave_frame_memory(heap& here) noexcept;

}  // namespace weft::detail

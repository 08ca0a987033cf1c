// A worker's heap: where its frames lie, and how blocks that other workers have freed come back to it. What a frame costs
// is described in memory/frame_memory.hpp.
//
//   owner   takes a block from the free list of its size class, else cuts one from the current slab; frees into the list, or moves
//           `bump` down again
//   others  put blocks that they free into `returned`, several at once; the owner takes all of them where it needs a slab, and
//           before a sweep. A worker sends the blocks that it still holds back before it sleeps or ends, so each holds few of them
//   drain   by any worker, when much waits in `returned`: takes all, gives back the slabs all of whose blocks it has then, and puts
//           the rest back. Needed since the owner may be idle for ever
//   age     by a thread that is about to sleep, and once a second while it sleeps: sweeps its own lists if they have been long for
//           a second, and drains the heaps to which it has sent much
//
// A sweep or a drain finds the slabs that are wholly free at that moment. After a peak, most slabs still have one frame that
// lives for a while, so the blocks that one walk left must be walked again once anything else was freed. How many bytes were
// freed does not say when: the last frames of many slabs are few bytes. So time decides: the more blocks there are, the
// longer the time until the next walk over them, which bounds its share of the processor.
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

/// One worker's frames. Used by its own thread only, but for `returned` and what stands below it.
struct heap : frame_front {
  static constexpr std::size_t granule = frame_granule;
  static constexpr std::size_t small = small_frame;  // up to here a class every 32 bytes
  static constexpr std::size_t large = large_frame;  // up to here eight classes a doubling; above: operator new
  static constexpr std::size_t classes = frame_classes;
  // Limits of bytes in free lists: more than `keep` is swept when that has lasted a second, `keep_for_a_second` at once.
  static constexpr std::size_t keep = std::size_t{32} << 20, keep_for_a_second = std::size_t{128} << 20;
  // In milliseconds: how long the lists must have been long before a walk over them. After a walk over `blocks` blocks, the
  // same before the next one.
  static constexpr long patience_after(std::size_t blocks) noexcept {
    return std::max(1000L, static_cast<long>(blocks / 500));  // some 20 ns each: a hundredth of the time
  }

  std::byte* base = nullptr;   // of the current slab, as `bump`; null: there is none
  std::byte* below = nullptr;  // the top of the slab before it
  std::size_t freed = 0;       // bytes that were ever put into free lists
  std::size_t swept_at = 0;    // the value of `freed` at the last sweep
  std::size_t look_at = keep;  // the value of `freed` at which it looks again how much is cached, and for how long
  // From so many bytes in the lists on, it sweeps; twice what the last sweep left, if that is more.
  std::size_t too_many = keep_for_a_second;
  long many_since = 0;  // when the lists were first seen to be long, in milliseconds; 0: not since the last sweep
  long patience = patience_after(0);

  // Small blocks of another heap that are to be sent back together. Its own thread's.
  heap* sends_to = nullptr;
  free_block* newest_to_send = nullptr;
  free_block* oldest_to_send = nullptr;
  std::size_t bytes_to_send = 0;
  unsigned blocks_to_send = 0;
  bool sent_much = false;  // it has sent blocks to a heap where much waits, which it is to drain later
  static constexpr unsigned most_together = 16;

  // Blocks that other workers freed.
  inbox<free_block> returned;          // its edge: the last use of the block  ->  the thread that hands it out again
  atomic<std::size_t> waiting{0};      // bytes in `returned`, or more. A count, no edge
  atomic<std::size_t> drain_at{keep};  // a drain is worth while from so many bytes on. A hint, no edge
  atomic<std::size_t> keeps_waiting{keep};  // the least value of `drain_at`. A hint, no edge
  // The bytes that the last drain left, if none were taken since. A hint, no edge: as long as no more bytes wait, another
  // drain would find nothing.
  atomic<std::size_t> stayed{0};
  atomic<std::size_t> held{0};  // slabs. Written under `lock`; a count, no edge
  tiny_lock draining;           // held during a drain
  plain<long> drained_at = 0;   // in milliseconds; with the time until the next drain, under `draining`
  plain<long> drain_patience = 0;
  heap* made_before = nullptr;     // link in the list of all
  tiny_lock lock;                  // guards `slabs` and `current`; only the owner adds a slab
  plain<slab*> slabs = nullptr;    // all, the current one first
  plain<slab*> current = nullptr;  // the one that frames are cut from; null: none

  void* allocate_small(std::size_t bytes);  // a multiple of `granule`
  void* allocate(std::size_t size);         // above `small`, up to `large`
  void free(void* block, std::size_t bytes) noexcept;

  /// Sends blocks of another heap that were freed here back to that one.
  void send() noexcept {
    if (blocks_to_send != 0) send_all();
  }

  /// Gives back the slabs that hold no live frame.
  void sweep() noexcept;
  /// False: nothing was freed since the last sweep, so another one would find no slab.
  bool is_worth_a_sweep() const noexcept {
    return freed != swept_at || waiting.load(std::memory_order_relaxed) != 0;  // a count
  }

  /// Sweeps if the lists have been long for a second at `now`, in milliseconds. True: there are many slabs, and other
  /// threads may free their frames, so it is to be called again in a while.
  bool age(long now) noexcept;

  /// By any thread: gives back the slabs all of whose blocks are in `returned`.
  void drain() noexcept;
  /// False: nothing was returned since the last drain, so another one would find no slab.
  bool is_worth_a_drain() const noexcept {
    return waiting.load(std::memory_order_relaxed) != stayed.load(std::memory_order_relaxed);  // as declared, both
  }
  /// Drains if much waits, more than the last drain left, and that was some time before `now`. True: it was not long enough
  /// ago, so this is to be called again in a while.
  bool drain_at_times(long now) noexcept;

  /// Called when its thread ends, and when another one takes the heap over.
  void leave() noexcept;
  void take_over() noexcept;

  static constexpr std::size_t class_of(std::size_t size) noexcept {
    if (size <= small) return (size + granule - 1) / granule;
    const auto doubling =
        static_cast<std::size_t>(std::bit_width(size - 1) - std::bit_width(small));  // 0: to 2 * small
    const std::size_t eighth = (size - 1 - (small << doubling)) / (small / 8 << doubling);
    return small / granule + 1 + doubling * 8 + eighth;
  }
  static constexpr std::size_t bytes_of(std::size_t size_class) noexcept {
    constexpr std::size_t last_small = small / granule;
    if (size_class <= last_small) return size_class * granule;
    const std::size_t step = size_class - last_small - 1;
    return (small << (step / 8)) + (step % 8 + 1) * (small / 8 << (step / 8));
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

/// Where code in headers takes frames from: that heap, or `no_front` where there is none. See frames_here().
[[gnu::tls_model("initial-exec")]] extern constinit thread_local frame_front* front_of_thread __asm__(
    "weft_frames_here");
/// A front without blocks, which is never written.
extern constinit frame_front no_front;

/// Makes the calling thread's worker, and gives its heap. Defined in core, as the next one.
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

/// Gives back blocks and slabs that were not needed lately. By a thread that is about to sleep. True: there are more, so it
/// is to be called again in a while.
bool age_frame_memory() noexcept;

/// Called when the thread of `here` ends: the heap waits for the next thread, and heaps that it has sent blocks to are
/// drained.
void leave_frame_memory(heap& here) noexcept;

}  // namespace weft::detail

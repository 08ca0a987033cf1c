// A worker's heap: where its frames lie, and how those that others freed come home. What a frame costs stands in
// detail/frame_memory.hpp.
//
//   owner   takes from a class's list, else cuts from the current slab; puts back, or moves `bump` down again
//   others  put blocks into `returned`, some together, which the owner takes all at once where it needs a slab, and before
//           a sweep. What one of them has not sent yet, it sends before it sleeps or ends, so few blocks of one heap at a
//           time lie with each
//   drain   by any of those, when much waits there: takes all, finds the slabs of which everything that was cut is in its
//           hand, which so nobody else can have, and puts the rest back. The owner may be idle for ever
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <weft/detail/atomic.hpp>
#include <weft/detail/frame_memory.hpp>
#include <weft/detail/inbox.hpp>
#include <weft/detail/lock.hpp>

#include "detail/slabs.hpp"

namespace weft::detail {

/// One worker's frames. Touched by its own thread only, but for what stands below `returned`.
struct heap : frame_front {
  static constexpr std::size_t granule = frame_granule;
  static constexpr std::size_t small = small_frame;  // up to here a class every 32 bytes
  static constexpr std::size_t large = large_frame;  // up to here four classes a doubling; above: operator new
  static constexpr std::size_t classes = frame_classes;
  // Bytes in free lists: more is swept when it has lain there for a second; and so much at once.
  static constexpr std::size_t keep = std::size_t{32} << 20, keep_for_a_second = std::size_t{128} << 20;

  std::byte* base = nullptr;   // of the current slab, as `bump`; null: there is none
  std::byte* below = nullptr;  // the top of the slab before it
  std::size_t many = keep;     // as those two, or twice what the last sweep left
  std::size_t too_many = keep_for_a_second;
  std::size_t look_at = keep;  // when so much is cached, one looks how much it is, and for how long
  long many_since = 0;         // in milliseconds; 0: nobody has looked since the last sweep

  // Small blocks of another heap that are to go home together: its own thread's.
  heap* sends_to = nullptr;
  free_block* newest_to_send = nullptr;
  free_block* oldest_to_send = nullptr;
  std::size_t bytes_to_send = 0;
  unsigned blocks_to_send = 0;
  static constexpr unsigned most_together = 16;

  // Blocks that other workers freed.
  inbox<free_block> returned;               // its edge: the last use of the block  ->  who hands it out again
  atomic<std::size_t> waiting{0};           // bytes in there. A count, no edge: at least what one can find there
  atomic<std::size_t> drain_at{keep};       // so many are enough to look for whole slabs. A hint, no edge
  atomic<std::size_t> keeps_waiting{keep};  // what `drain_at` is at least. The same
  tiny_lock draining;                       // held by who looks
  tiny_lock lock;                           // of the list, and of `current`; the owner alone adds to it
  plain<slab*> slabs = nullptr;             // all, the current one first
  plain<slab*> current = nullptr;           // the one that frames are cut from; null: none

  void* allocate_small(std::size_t bytes);  // a multiple of `granule`
  void* allocate(std::size_t size);         // above `small`, up to `large`
  void free(void* block, std::size_t bytes) noexcept;

  /// Sends home what was freed here and is another's.
  void send() noexcept {
    if (blocks_to_send != 0) send_all();
  }

  /// Gives back the slabs that hold no live frame.
  void sweep() noexcept;

  /// The same if free blocks have been many for a second. True: they are many, so ask again in a while.
  bool age() noexcept;

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
  void receive(free_block& newest, free_block& oldest, std::size_t bytes) noexcept;
  void step_back(std::byte* block) noexcept;
  void look() noexcept;
  bool were_many_for_a_second() noexcept;
  std::size_t take_returned() noexcept;
  void drain() noexcept;
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

}  // namespace weft::detail

// Pieces of memory from which workers cut frames, from the system and back to it.
//
// Address space is taken from the system 4 MiB at a time and kept, as long as the system has some. A slab that was given
// back keeps its memory for a while (it is warm), since a peak often comes again: a recursion of a million levels needs 90
// MiB each time, which is 25,000 page faults if it has to get them anew. Slabs that were not needed for a second go back to
// the system, but for a few. There is no thread for that: a thread that gives a slab back, or is about to sleep, looks at
// the clock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>

namespace weft::detail {

struct heap;

inline constexpr std::size_t huge_page = std::size_t{2} << 20;

/// The time by which frame memory ages: of a clock that goes on steadily, some milliseconds behind.
long coarse_milliseconds() noexcept;

/// A piece of 256 KiB, aligned to its size, from which one worker cuts frames.
struct slab {
  static constexpr std::size_t bytes = std::size_t{256} << 10;

  heap* owner;
  slab* next;           // under the heap's lock
  std::byte* top;       // end of what was ever cut from it; of the current one, only while a sweep looks
  std::size_t freed;    // scratch of a sweep: bytes of this slab that lie in free lists
  std::size_t drained;  // scratch of a drain: bytes of this slab that lie in `returned`

  static slab* of(void* block) noexcept {
    return reinterpret_cast<slab*>(reinterpret_cast<std::uintptr_t>(block) & ~(bytes - 1));
  }
  std::byte* begin() noexcept { return reinterpret_cast<std::byte*>(this) + 64; }
  std::byte* end() noexcept { return reinterpret_cast<std::byte*>(this) + bytes; }
  std::size_t cut() noexcept { return static_cast<std::size_t>(top - begin()); }
};

/// Slabs that no worker uses. Any thread may call all of it.
class slab_source {
 public:
  static slab_source& the_one() noexcept;

  /// Throws std::bad_alloc. `one_more`: the heap has a slab already.
  slab* take(heap& owner, bool one_more);
  void give_back(slab* one) noexcept;

  /// True: some slabs are warm that may go back later.
  bool let_go_of_unused(long now) noexcept;
  void let_go_of_all() noexcept;
  /// Unmaps them, so that their addresses are free, too: when an allocation elsewhere finds no memory, and when the library
  /// is unloaded.
  void unmap_all() noexcept;

  /// How many are in use or warm.
  std::size_t bytes_in_use() noexcept;

  /// Around a fork(), in the parent and in the child, so that no thread holds the lock meanwhile.
  void before_fork() noexcept { lock_.lock(); }
  void after_fork() noexcept { lock_.unlock(); }

 private:
  static constexpr std::size_t always_warm = (std::size_t{32} << 20) / slab::bytes;
  static constexpr std::size_t most_warm = (std::size_t{128} << 20) / slab::bytes;

  void reserve(bool large_pages);
  void cool(slab* one) noexcept;
  void age(long now) noexcept;

  std::mutex lock_;
  slab* warm_ = nullptr;  // the one that was given back last comes first
  slab* cold_ = nullptr;
  std::byte* fresh_ = nullptr;      // of the newest region, what was never touched: up to
  std::byte* fresh_end_ = nullptr;  // here
  std::size_t warm_count_ = 0;
  std::size_t least_ = 0;  // the least number of warm slabs since `last_aged_`
  long last_aged_ = 0;     // in milliseconds
  std::size_t in_use_ = 0;
  std::size_t regions_ = 0;
};

}  // namespace weft::detail

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <new>
#include <weft/detail/frame_memory.hpp>

#include "detail/worker.hpp"

#if defined(__SANITIZE_ADDRESS__)
#define WEFT_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WEFT_ASAN 1
#endif
#endif

namespace weft::detail {
namespace {

// ---- slabs: from the system, and back to it --------------------------------------------------------------------------

/// Slabs that no worker uses. Address space is taken 4 MiB at a time and kept; what lies in it goes back to the system
/// beyond the first few slabs, which stay warm.
class slab_source {
 public:
  slab* take(heap& owner) {
    std::unique_lock guard{lock_};
    if (free_ == nullptr) reserve();
    slab* taken = free_;
    free_ = taken->next;
    if (warm_ != 0) --warm_;
    ++in_use_;
    guard.unlock();
    return ::new (taken) slab{&owner, nullptr, 0, taken->begin()};
  }

  void give_back(slab* one) noexcept {
    std::unique_lock guard{lock_};
    --in_use_;
    if (warm_ < warm_slabs) {
      ++warm_;
      one->next = free_;
      free_ = one;
      return;
    }
    // Cold ones go to the far end, so that the warm ones are taken first. Only their first page stays resident.
    ::madvise(reinterpret_cast<std::byte*>(one) + page, slab::bytes - page, MADV_DONTNEED);
    slab** link = &free_;
    for (std::size_t i = 0; i < warm_ && *link != nullptr; ++i) link = &(*link)->next;
    one->next = *link;
    *link = one;
  }

  std::size_t bytes_in_use() noexcept {
    std::lock_guard guard{lock_};
    return (in_use_ + warm_) * slab::bytes;
  }

 private:
  static constexpr std::size_t region = std::size_t{4} << 20;
  static constexpr std::size_t huge_page = std::size_t{2} << 20;
  static constexpr std::size_t warm_slabs = 16;
  static constexpr std::size_t page = 4096;

  // Large pages are asked for from the second region on: a small program stays small.
  void reserve() {
    void* mapped =
        ::mmap(nullptr, region + huge_page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) throw std::bad_alloc{};
    auto* begin = static_cast<std::byte*>(mapped);
    auto* aligned =
        reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(begin) + huge_page - 1) & ~(huge_page - 1));
    if (aligned != begin) ::munmap(begin, static_cast<std::size_t>(aligned - begin));
    if (auto* end = aligned + region; end != begin + region + huge_page)
      ::munmap(end, static_cast<std::size_t>(begin + region + huge_page - end));
    if (regions_++ != 0) ::madvise(aligned, region, MADV_HUGEPAGE);
    for (std::byte* at = aligned + region; at != aligned;) {
      at -= slab::bytes;
      auto* one = reinterpret_cast<slab*>(at);
      one->next = free_;
      free_ = one;
    }
  }

  std::mutex lock_;
  slab* free_ = nullptr;
  std::size_t warm_ = 0;  // how many at the front of free_ may hold resident pages
  std::size_t in_use_ = 0;
  std::size_t regions_ = 0;
};

slab_source& slabs() noexcept {
  alignas(slab_source) static std::byte storage[sizeof(slab_source)];  // never destroyed: frames may outlive statics
  static auto* source = ::new (storage) slab_source;
  return *source;
}

// ---- size classes -----------------------------------------------------------------------------------------------------

std::size_t class_of(std::size_t size) noexcept {
  if (size <= heap::small) return (size + heap::granule - 1) / heap::granule;
  const auto doubling = static_cast<std::size_t>(std::bit_width(size - 1)) - 11;  // 0 for 1025..2048
  const std::size_t quarter = (size - 1 - (heap::small << doubling)) / (heap::small / 4 << doubling);
  return heap::small / heap::granule + 1 + doubling * 4 + quarter;
}

std::size_t bytes_of(std::size_t size_class) noexcept {
  constexpr std::size_t last_small = heap::small / heap::granule;
  if (size_class <= last_small) return size_class * heap::granule;
  const std::size_t step = size_class - last_small - 1;
  return (heap::small << (step / 4)) + (step % 4 + 1) * (heap::small / 4 << (step / 4));
}

void release_to_operator_delete(void*, void* block, std::size_t) noexcept {
  ::operator delete(block, std::align_val_t{heap::granule});
}

/// A frame too large for a slab.
void* allocate_large(std::size_t size) {
  void* block = ::operator new(sizeof(foreign_frame_header) + size, std::align_val_t{heap::granule});
  return ::new (block) foreign_frame_header{nullptr, release_to_operator_delete} + 1;
}

bool is_foreign(void* frame) noexcept { return (reinterpret_cast<std::uintptr_t>(frame) & 16) != 0; }

}  // namespace

// ---- a worker's heap ----------------------------------------------------------------------------------------------------

void* heap::allocate(std::size_t size) {
  if (size > large) [[unlikely]]
    return allocate_large(size);
  const std::size_t size_class = size <= small ? (size + granule - 1) / granule : class_of(size);
  if (free_block* block = lists[size_class]) [[likely]] {
    lists[size_class] = block->next;
    const std::size_t bytes = size <= small ? size_class * granule : bytes_of(size_class);
    cached -= bytes;
    return block;
  }
  const std::size_t bytes = size <= small ? size_class * granule : bytes_of(size_class);
  if (bytes <= static_cast<std::size_t>(end - bump)) [[likely]] {
    void* block = bump;
    bump += bytes;
    return block;
  }
  return cut(bytes, size_class);
}

void heap::free(void* block, std::size_t size) noexcept {
  const std::size_t size_class = size <= small ? (size + granule - 1) / granule : class_of(size);
  const std::size_t bytes = size <= small ? size_class * granule : bytes_of(size_class);
  if (static_cast<std::byte*>(block) + bytes == bump) {
    bump = static_cast<std::byte*>(block);
    return;
  }
  if (slab::of(block)->owner != this) [[unlikely]] {
    heap& home = *slab::of(block)->owner;
    auto* going = ::new (block) free_block{home.returned.load(std::memory_order_relaxed), size_class};
    while (!home.returned.compare_exchange_weak(going->next, going,
                                                std::memory_order_release,     // -> home
                                                std::memory_order_relaxed)) {  // only `next` is read, and it is a value
    }
    return;
  }
  lists[size_class] = ::new (block) free_block{lists[size_class], 0};
  cached += bytes;
  if (cached > sweep_at) [[unlikely]]
    sweep();
}

// The current slab has no room: what came home first, then a new slab. The rest of the old one is lost until a sweep
// finds the slab empty: at most one frame's worth of every slab.
[[gnu::noinline]] void* heap::cut(std::size_t bytes, std::size_t size_class) {
  take_returned();
  if (free_block* block = lists[size_class]) {
    lists[size_class] = block->next;
    cached -= bytes;
    return block;
  }
  slab* fresh = detail::slabs().take(*this);
  note_bump();
  fresh->next = slabs;
  slabs = fresh;
  bump = fresh->begin() + bytes;
  end = fresh->end();
  return fresh->begin();
}

// The first slab is the one that is cut from, but for a sweep that gave that one back.
void heap::note_bump() noexcept {
  if (bump != nullptr) slabs->bumped = bump;
}

void heap::take_returned() noexcept {
  free_block* block = returned.exchange(nullptr, std::memory_order_acquire);  // <- home
  while (block != nullptr) {
    free_block* next = block->next;
    cached += bytes_of(block->size_class);
    block->next = lists[block->size_class];
    lists[block->size_class] = block;
    block = next;
  }
}

// Gives back the slabs of which every byte ever cut lies in a free list. Linear in the free blocks; run when those have
// doubled since the last time, so its cost is shared out over as many frees.
[[gnu::noinline]] void heap::sweep() noexcept {
  take_returned();
  note_bump();
  for (slab* one = slabs; one != nullptr; one = one->next) one->freed = 0;
  for (std::size_t c = 1; c < classes; ++c)
    for (free_block* block = lists[c]; block != nullptr; block = block->next) slab::of(block)->freed += bytes_of(c);

  const auto empty = [](slab* one) { return one->freed == static_cast<std::size_t>(one->bumped - one->begin()); };
  for (std::size_t c = 1; c < classes; ++c)
    for (free_block** link = &lists[c]; *link != nullptr;)
      if (empty(slab::of(*link))) {
        cached -= bytes_of(c);
        *link = (*link)->next;
      } else {
        link = &(*link)->next;
      }

  if (slabs != nullptr && empty(slabs)) bump = end = nullptr;
  for (slab** link = &slabs; *link != nullptr;)
    if (slab* one = *link; empty(one)) {
      *link = one->next;
      detail::slabs().give_back(one);
    } else {
      link = &one->next;
    }
  if (slabs == nullptr || end != slabs->end()) bump = end = nullptr;  // an older slab is never cut from again
  sweep_at = std::max(keep, 2 * cached);
}

// ---- the interface ------------------------------------------------------------------------------------------------------

[[gnu::noinline]] void* allocate_frame(std::size_t size) {
#ifdef WEFT_ASAN
  return allocate_large(size);  // so that a frame used after its end is seen at once
#else
  return this_worker().frames.allocate(size);
#endif
}

[[gnu::noinline]] void free_frame(void* frame, std::size_t size) noexcept {
  if (is_foreign(frame)) [[unlikely]] {
    foreign_frame_header* header = static_cast<foreign_frame_header*>(frame) - 1;
    header->release(header->resource, header, sizeof(foreign_frame_header) + size);
    return;
  }
  this_worker().frames.free(frame, size);
}

frame_memory_stats frame_memory_now() noexcept { return {slabs().bytes_in_use(), this_worker().frames.cached}; }

void trim_frame_memory() noexcept { this_worker().frames.sweep(); }

}  // namespace weft::detail

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory_resource>
#include <mutex>
#include <new>
#include <utility>
#include <weft/detail/frame_memory.hpp>

#include "detail/slabs.hpp"
#include "detail/worker.hpp"

namespace weft::detail {

static_assert(heap::granule == frame_granule && heap::small == small_frame);

namespace {

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

void free_foreign(void* frame, std::size_t size) noexcept {
  foreign_frame_header* header = static_cast<foreign_frame_header*>(frame) - 1;
  header->release(header->resource, header, size);
}

}  // namespace

// ---- a worker's heap ----------------------------------------------------------------------------------------------------

[[gnu::always_inline]] inline void* heap::allocate_small(std::size_t bytes) {
  const std::size_t size_class = bytes / granule;
  if (free_block* block = lists[size_class]) {
    lists[size_class] = block->next;
    cached -= bytes;
    return block;
  }
  std::byte* const block = bump;
  if (bytes > static_cast<std::size_t>(end - block)) [[unlikely]]
    return cut(bytes, size_class);
  bump = block + bytes;
  return block;
}

void* heap::allocate(std::size_t size) {
  if (size > large) return allocate_large(size);
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
  if (static_cast<std::byte*>(block) + bytes == bump) [[likely]] {
    bump = static_cast<std::byte*>(block);
    return;
  }
  free_below(block, bytes);
}

// Any block but the one on top. Apart, so that the way of that one saves no registers.
[[gnu::noinline]] void heap::free_below(void* block, std::size_t bytes) noexcept {
  const std::size_t size_class = class_of(bytes);
  if (heap& home = *slab::of(block)->owner; &home != this) [[unlikely]]
    return home.receive(block, size_class, bytes);
  if (static_cast<std::byte*>(block) + bytes == below && bump == base) [[unlikely]]
    return step_back(static_cast<std::byte*>(block));
  lists[size_class] = ::new (block) free_block{lists[size_class], 0};
  cached += bytes;
  if (cached > sweep_at) [[unlikely]]
    sweep();
}

// By a thread that is not the owner's.
[[gnu::noinline]] void heap::receive(void* block, std::size_t size_class, std::size_t bytes) noexcept {
  const std::size_t all = waiting.fetch_add(bytes, std::memory_order_relaxed) + bytes;  // before it is there
  returned.put(*::new (block) free_block{nullptr, size_class});
  if (all > drain_at.load(std::memory_order_relaxed)) drain();
}

// The current slab has no room: what came home first, then a new slab. The rest of the old one is lost until it is empty:
// at most one frame's worth of every slab.
[[gnu::noinline]] void* heap::cut(std::size_t bytes, std::size_t size_class) {
  take_returned();
  if (free_block* block = lists[size_class]) {
    lists[size_class] = block->next;
    cached -= bytes;
    return block;
  }
  slab* fresh = slab_source::the_one().take(*this);
  std::lock_guard guard{lock};
  if (current != nullptr) current->top = bump;
  fresh->next = slabs;
  slabs = fresh;
  cut_from(fresh, fresh->begin() + bytes);
  return fresh->begin();
}

// From here on frames are cut from `one`, the first slab, or from none. Under the lock.
void heap::cut_from(slab* one, std::byte* at) noexcept {
  current = one;
  const slab* before = one != nullptr ? one->next : slabs;
  base = one != nullptr ? one->begin() : nullptr;
  end = one != nullptr ? one->end() : nullptr;
  bump = at;
  below = before != nullptr ? before->top : nullptr;
}

// The current slab is empty, and `block` is on top of the one before: that is the current one again. So a call chain of
// any depth comes back on a stack of slabs, and none of its frames goes through a list.
[[gnu::noinline]] void heap::step_back(std::byte* block) noexcept {
  slab* empty;
  {
    std::lock_guard guard{lock};
    empty = current;
    if (empty != nullptr) slabs = empty->next;
    cut_from(slabs, block);
  }
  if (empty != nullptr) slab_source::the_one().give_back(empty);
}

// How many bytes.
std::size_t heap::take_returned() noexcept {
  std::size_t bytes = 0;
  for (free_block* block = returned.take_newest_first(); block != nullptr;) {
    free_block* next = block->next;
    bytes += bytes_of(block->size_class);
    block->next = lists[block->size_class];
    lists[block->size_class] = block;
    block = next;
  }
  cached += bytes;
  waiting.fetch_sub(bytes, std::memory_order_relaxed);
  drain_at.store(keeps_waiting.load(std::memory_order_relaxed), std::memory_order_relaxed);
  return bytes;
}

// By any thread: gives back the slabs of which all that was cut waits in `returned`, for an owner that may be idle. As
// for a sweep, its cost is shared out over as many frees. What is taken here, nobody else has meanwhile.
[[gnu::noinline]] void heap::drain() noexcept {
  if (!draining.try_lock()) return;
  constexpr std::size_t whole = ~std::size_t{0};
  free_block* const all = returned.take_newest_first();
  for (free_block* block = all; block != nullptr; block = block->next)
    slab::of(block)->drained += bytes_of(block->size_class);

  slab* gone = nullptr;
  {
    std::lock_guard guard{lock};
    for (slab** link = &slabs; *link != nullptr;) {
      slab* one = *link;
      if (one == current || one->drained != one->cut()) {
        link = &one->next;
      } else {
        *link = one->next;
        one->next = gone;
        gone = one;
        one->drained = whole;
      }
    }
  }

  std::size_t went = 0, stays = 0;
  free_block *first = nullptr, *last = nullptr;
  for (free_block* block = all; block != nullptr;) {
    free_block* next = block->next;
    slab* from = slab::of(block);
    const std::size_t bytes = bytes_of(block->size_class);
    if (from->drained == whole) {
      went += bytes;
    } else {
      stays += bytes;
      from->drained = 0;
      block->next = first;
      first = block;
      if (last == nullptr) last = block;
    }
    block = next;
  }
  if (first != nullptr) returned.put(*first, *last);
  waiting.fetch_sub(went, std::memory_order_relaxed);
  drain_at.store(std::max(keeps_waiting.load(std::memory_order_relaxed), 2 * stays), std::memory_order_relaxed);
  draining.unlock();
  while (gone != nullptr) slab_source::the_one().give_back(std::exchange(gone, gone->next));
}

// Gives back the slabs of which every byte ever cut lies in a free list. Linear in the free blocks; run when those have
// doubled since the last time, so its cost is shared out over as many frees.
[[gnu::noinline]] void heap::sweep() noexcept {
  take_returned();
  {
    std::lock_guard guard{lock};
    if (current != nullptr) current->top = bump;
    for (slab* one = slabs; one != nullptr; one = one->next) one->freed = 0;
  }
  for (std::size_t c = 1; c < classes; ++c)
    for (free_block* block = lists[c]; block != nullptr; block = block->next) slab::of(block)->freed += bytes_of(c);

  const auto empty = [](slab* one) { return one->freed == one->cut(); };
  for (std::size_t c = 1; c < classes; ++c)
    for (free_block** link = &lists[c]; *link != nullptr;)
      if (empty(slab::of(*link))) {
        cached -= bytes_of(c);
        *link = (*link)->next;
      } else {
        link = &(*link)->next;
      }

  slab* gone = nullptr;
  {
    std::lock_guard guard{lock};
    bool none = current == nullptr;
    for (slab** link = &slabs; *link != nullptr;)
      if (slab* one = *link; empty(one)) {
        none = none || one == current;
        *link = one->next;
        one->next = gone;
        gone = one;
      } else {
        link = &one->next;
      }
    cut_from(none ? nullptr : current, none ? nullptr : bump);
  }
  while (gone != nullptr) slab_source::the_one().give_back(std::exchange(gone, gone->next));
  sweep_at = std::max(keep, 2 * cached);
}

// Nobody is there to take what comes home, so little of it may wait.
void heap::leave() noexcept {
  keeps_waiting.store(slab::bytes, std::memory_order_relaxed);
  sweep();
}

void heap::take_over() noexcept {
  keeps_waiting.store(keep, std::memory_order_relaxed);
  if (take_returned() >= slab::bytes) sweep();
}

// ---- the interface ------------------------------------------------------------------------------------------------------

// All but small frames of a worker, too: apart from those, whose way saves no registers and asks as little as it can.
[[gnu::noinline]] void* allocate_large_frame(std::size_t size) {
  worker& here = this_worker();
  if (here.memory != nullptr) return here.memory->allocate(size);
#if WEFT_ASAN
  return allocate_large(size);  // so that a frame used after its end is seen at once
#else
  return size <= heap::small ? here.frames.allocate_small(small_frame_bytes(size)) : here.frames.allocate(size);
#endif
}

[[gnu::noinline]] void* allocate_small_frame(std::size_t size, [[maybe_unused]] std::size_t bytes) {
#if !WEFT_ASAN
  worker* const here = worker_of_thread;
  if (here != nullptr) [[likely]] {
    if (here->memory != nullptr) [[unlikely]]
      return here->memory->allocate(size);
    return here->frames.allocate_small(bytes);
  }
#endif
  return allocate_large_frame(size);
}

[[gnu::noinline]] void free_large_frame(void* frame, std::size_t size) noexcept {
  if (is_foreign(frame)) return free_foreign(frame, size);
  this_worker().frames.free(frame, size <= heap::small ? small_frame_bytes(size) : bytes_of(class_of(size)));
}

[[gnu::noinline]] void free_small_frame(void* frame, std::size_t size, std::size_t bytes) noexcept {
  if (is_foreign(frame)) [[unlikely]]
    return free_foreign(frame, size);
  worker* const here = worker_of_thread;
  if (here != nullptr) [[likely]]
    return here->frames.free(frame, bytes);
  free_large_frame(frame, size);
}

// ---- frames from a resource that was chosen -----------------------------------------------------------------------------

void* begin_foreign_frame(void* block, const foreign_frame_header& header) noexcept {
  WEFT_EXPECTS(reinterpret_cast<std::uintptr_t>(block) % foreign_frame_alignment == 0,
               "a memory resource gave a block that is not aligned as it was asked to");
  return ::new (block) foreign_frame_header{header} + 1;
}

frame_source::~frame_source() {
  WEFT_EXPECTS(live() == 0,
               "a frame from a scope's memory outlived the scope: a task, fork or generator that was made below it was "
               "kept, and its memory goes now");
}

namespace { constexpr std::size_t busy = ~(~std::size_t{0} >> 1); }

// How many frames are alive. Of a source that is not shared.
inline std::size_t frame_source::live_in_here() const noexcept {
  const std::size_t live = live_.load(std::memory_order_relaxed);  // as declared, like all below
  WEFT_EXPECTS((live & busy) == 0,
               "two threads use the memory of one scope at once, which was not declared shared: set .memory_is_shared, "
               "and give a resource that is");
  return live;
}

void* frame_source::allocate(std::size_t size) {
  void* block;
  if (shared_) {
    block = resource_->allocate(foreign_frame_bytes(size), foreign_frame_alignment);
    live_.fetch_add(1, std::memory_order_relaxed);
  } else {
    const std::size_t live = live_in_here();
    live_.store(live | busy, std::memory_order_relaxed);
    try {
      block = resource_->allocate(foreign_frame_bytes(size), foreign_frame_alignment);
    } catch (...) {
      live_.store(live, std::memory_order_relaxed);
      throw;
    }
    live_.store(live + 1, std::memory_order_relaxed);
  }
  return begin_foreign_frame(block, {this, release});
}

void frame_source::release(void* source, void* block, std::size_t frame_size) noexcept {
  auto& mine = *static_cast<frame_source*>(source);
  if (mine.shared_)
    mine.live_.fetch_sub(1, std::memory_order_relaxed);
  else
    mine.live_.store(mine.live_in_here() - 1, std::memory_order_relaxed);
  mine.resource_->deallocate(block, foreign_frame_bytes(frame_size), foreign_frame_alignment);
}

void frame_source::enter(const executor* where, const worker& here) noexcept {
  if (shared_) return;
  const void* const user = where != nullptr ? static_cast<const void*>(where) : &here;
  const void* found = user_.load(std::memory_order_relaxed);  // as declared, three times
  if (found == user) [[likely]]
    return;
  WEFT_EXPECTS(found == nullptr &&
                   user_.compare_exchange_strong(found, user, std::memory_order_relaxed, std::memory_order_relaxed),
               "two executors, or two threads of none, use the memory of one scope, which was not declared shared: "
               "set .memory_is_shared, and give a resource that is");
}

ambient_memory::ambient_memory(frame_source* source) noexcept : outer_{std::exchange(this_worker().memory, source)} {}
ambient_memory::~ambient_memory() { this_worker().memory = outer_; }

frame_memory_stats frame_memory_now() noexcept {
  return {slab_source::the_one().bytes_in_use(), this_worker().frames.cached};
}

void trim_frame_memory() noexcept {
  this_worker().frames.sweep();
  slab_source::the_one().let_go_of_all();
}

bool age_frame_memory() noexcept { return slab_source::the_one().let_go_of_unused(); }

}  // namespace weft::detail

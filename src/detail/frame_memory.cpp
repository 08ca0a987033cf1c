#include <cstdint>
#include <memory_resource>
#include <new>
#include <utility>
#include <weft/detail/frame_memory.hpp>

#include "detail/asan.hpp"
#include "detail/worker.hpp"

namespace weft::detail {

namespace {

void release_to_operator_delete(void*, void* block, std::size_t) noexcept {
  ::operator delete(block, std::align_val_t{heap::granule});
}

// What others' lists hold is theirs alone: they look when they sleep.
void drain_all() noexcept {
  for (worker* one = newest_worker(); one != nullptr; one = one->made_before)
    if (one->frames.is_worth_a_drain()) one->frames.drain();
}

// What `take` gives. If there is no memory, it is asked once more after all that is cached was given back.
template <class Take>
void* with_what_is_cached(Take take) {
  try {
    return take();
  } catch (const std::bad_alloc&) {
    if (heap& mine = this_worker().frames; mine.is_worth_a_sweep()) mine.sweep();
    drain_all();
    return take();
  }
}

/// A frame too large for a slab.
void* allocate_large(std::size_t size) {
  void* block = with_what_is_cached([=, asked = false]() mutable {
    if (std::exchange(asked, true)) slab_source::the_one().unmap_all();
    return ::operator new(sizeof(foreign_frame_header) + size, std::align_val_t{heap::granule});
  });
  return ::new (block) foreign_frame_header{nullptr, release_to_operator_delete} + 1;
}

bool is_foreign(void* frame) noexcept { return (reinterpret_cast<std::uintptr_t>(frame) & 16) != 0; }

void free_foreign(void* frame, std::size_t size) noexcept {
  foreign_frame_header* header = static_cast<foreign_frame_header*>(frame) - 1;
  header->release(header->resource, header, size);
}

}  // namespace

// ---- the interface ------------------------------------------------------------------------------------------------------

// All but small frames of a worker, too: apart from those, whose way saves no registers and asks as little as it can.
[[gnu::noinline]] void* allocate_large_frame(std::size_t size) {
  worker& here = this_worker();
  if (here.frames.memory != nullptr) return here.frames.memory->allocate(size);
  if (size > heap::large || asan_watches())
    return allocate_large(size);  // there, each is known by who made and freed it
  return with_what_is_cached([&, size] {
    return size <= heap::small ? here.frames.allocate_small(small_frame_bytes(size)) : here.frames.allocate(size);
  });
}

[[gnu::noinline]] void* allocate_small_frame(std::size_t size, std::size_t bytes) {
  if (frame_front* const front = front_of_thread; front != &no_front) [[likely]] {
    if (front->memory != nullptr) [[unlikely]]
      return front->memory->allocate(size);
    return with_what_is_cached([=] { return static_cast<heap*>(front)->allocate_small(bytes); });
  }
  return allocate_large_frame(size);
}

[[gnu::noinline]] void free_large_frame(void* frame, std::size_t size) noexcept {
  if (is_foreign(frame)) return free_foreign(frame, size);
  this_worker().frames.free(frame,
                            size <= heap::small ? small_frame_bytes(size) : heap::bytes_of(heap::class_of(size)));
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
  trim();
}

bool frame_source::trim() noexcept {
  if (is_shared()) return false;  // others may look for a block
  bool any = false;
  for (std::size_t i = 0; i != kept_sizes; ++i)
    if (void* const block = std::exchange(kept_[i], nullptr)) {
      resource_->deallocate(block, i * foreign_frame_alignment, foreign_frame_alignment);
      any = true;
    }
  return any;
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

// Mostly there is a block that was just freed: that way calls nothing.
void* frame_source::allocate(std::size_t size) {
  const std::size_t bytes = foreign_frame_bytes(size), at = bytes / foreign_frame_alignment;
  if (at < kept_sizes) [[likely]]
    if (foreign_frame_header* const block = kept_[at]) [[likely]] {
      const std::size_t live = live_in_here();
      kept_[at] = nullptr;
      live_.store(live + 1, std::memory_order_relaxed);
      return block + 1;
    }
  return allocate_anew(bytes);
}

// It may have memory again once it has back what is kept.
inline void* frame_source::ask_resource(std::size_t bytes) {
  try {
    return resource_->allocate(bytes, foreign_frame_alignment);
  } catch (const std::bad_alloc&) {
    if (!trim()) throw;
    return resource_->allocate(bytes, foreign_frame_alignment);
  }
}

[[gnu::noinline]] void* frame_source::allocate_anew(std::size_t bytes) {
  void* block;
  if (is_shared()) {
    block = ask_resource(bytes);
    live_.fetch_add(1, std::memory_order_relaxed);
  } else {
    const std::size_t live = live_in_here();
    live_.store(live | busy, std::memory_order_relaxed);
    try {
      block = ask_resource(bytes);
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
  const std::size_t bytes = foreign_frame_bytes(frame_size);
  if (bytes < mine.keeps_below_ && !asan_watches()) [[likely]]  // which sees at once what uses a frame after its end
    if (foreign_frame_header*& kept = mine.kept_[bytes / foreign_frame_alignment]; kept == nullptr) [[likely]] {
      mine.live_.store(mine.live_in_here() - 1, std::memory_order_relaxed);
      kept = static_cast<foreign_frame_header*>(block);
      return;
    }
  mine.give_back(block, bytes);
}

[[gnu::noinline]] void frame_source::give_back(void* block, std::size_t bytes) noexcept {
  if (is_shared())
    live_.fetch_sub(1, std::memory_order_relaxed);
  else
    live_.store(live_in_here() - 1, std::memory_order_relaxed);
  resource_->deallocate(block, bytes, foreign_frame_alignment);
}

void frame_source::enter(const executor* where, const worker& here) noexcept {
  if (is_shared()) return;
  const void* const user = where != nullptr ? static_cast<const void*>(where) : &here;
  const void* found = user_.load(std::memory_order_relaxed);  // as declared, three times
  if (found == user) [[likely]]
    return;
  WEFT_EXPECTS(found == nullptr &&
                   user_.compare_exchange_strong(found, user, std::memory_order_relaxed, std::memory_order_relaxed),
               "two executors, or two threads of none, use the memory of one scope, which was not declared shared: "
               "set .memory_is_shared, and give a resource that is");
}

ambient_memory::ambient_memory(frame_source* source) noexcept
    : outer_{std::exchange(this_worker().frames.memory, source)} {}
ambient_memory::~ambient_memory() { this_worker().frames.memory = outer_; }

frame_memory_stats frame_memory_now() noexcept {
  return {slab_source::the_one().bytes_in_use(), this_worker().frames.cached};
}

void trim_frame_memory() noexcept {
  this_worker().frames.sweep();
  slab_source::the_one().let_go_of_all();
}

bool age_frame_memory(long now) noexcept {
  heap& mine = this_worker().frames;
  const bool has_many = mine.age(now);
  if (mine.sent_much) {
    bool again = false;
    for (worker* one = newest_worker(); one != nullptr; one = one->made_before)
      again |= one->frames.drain_at_times(now);
    mine.sent_much = again;
  }
  const bool many_slabs = slab_source::the_one().let_go_of_unused(now);
  return has_many || mine.sent_much || many_slabs;
}

bool age_frame_memory() noexcept { return age_frame_memory(coarse_milliseconds()); }

void leave_frame_memory(worker& here) noexcept {
  here.frames.leave();
  if (std::exchange(here.frames.sent_much, false)) drain_all();
}

}  // namespace weft::detail

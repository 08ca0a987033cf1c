#include <cstdint>
#include <memory_resource>
#include <new>
#include <utility>
#include <weft/detail/memory/frame_memory.hpp>
#include <weft/frame_memory.hpp>

#include "base/asan.hpp"
#include "memory/heap.hpp"
#include "trace/request_trace.hpp"

namespace weft::detail {

[[gnu::tls_model("initial-exec")]] constinit thread_local heap* heap_of_thread = nullptr;
// Used only by code that programs inline, so the compiler of this file sees no use of it.
[[gnu::used, gnu::tls_model("initial-exec")]] constinit thread_local frame_front* front_of_thread = &no_front;
constinit frame_front no_front;

namespace {

void release_to_operator_delete(void*, void* block, std::size_t) noexcept {
  ::operator delete(block, std::align_val_t{heap::granule});
}

// Drains all heaps. Free lists belong to their owners alone, who sweep them before they sleep.
void drain_all() noexcept {
  for (heap* one = newest_heap(); one != nullptr; one = one->made_before)
    if (one->is_worth_a_drain()) one->drain();
}

// Gives what `take` gives. If that finds no memory, calls it once more after all cached memory was given back.
template <class Take>
void* with_what_is_cached(Take take) {
  try {
    return take();
  } catch (const std::bad_alloc&) {
    if (heap& mine = this_heap(); mine.is_worth_a_sweep()) mine.sweep();
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

// Allocates any frame but a small one of a worker. Those have a path of their own, which saves no registers and checks as
// little as it can.
[[gnu::noinline]] void* allocate_large_frame(std::size_t size) {
  heap& here = this_heap();
  if (here.memory != nullptr) return here.memory->allocate(size);
  if (size > heap::large || asan_watches())
    return allocate_large(size);  // the sanitizer then knows where each was made and freed
  return with_what_is_cached(
      [&, size] { return size <= heap::small ? here.allocate_small(small_frame_bytes(size)) : here.allocate(size); });
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
  this_heap().free(frame, size <= heap::small ? small_frame_bytes(size) : heap::bytes_of(heap::class_of(size)));
}

[[gnu::noinline]] void free_small_frame(void* frame, std::size_t size, std::size_t bytes) noexcept {
  if (is_foreign(frame)) [[unlikely]]
    return free_foreign(frame, size);
  if (heap* const here = heap_of_thread; here != nullptr) [[likely]]
    return here->free(frame, bytes);
  free_large_frame(frame, size);
}

// ---- frames from a resource that was chosen -----------------------------------------------------------------------------

void* begin_foreign_frame(void* block, const foreign_frame_header& header) noexcept {
  WEFT_EXPECTS(reinterpret_cast<std::uintptr_t>(block) % foreign_frame_alignment == 0,
               "a memory resource gave a block that is not aligned as it was asked to");
  return ::new (block) foreign_frame_header{header} + 1;
}

frame_source::frame_source(std::pmr::memory_resource* resource, bool shared) noexcept
    : resource_{resource}, keeps_below_{shared ? 0 : most_kept}, outer_{nullptr}, trace_{nullptr} {
  if (const heap* const here = heap_of_thread; here != nullptr && here->memory != nullptr)
    trace_ = here->memory->trace_;
}

frame_source::frame_source(request_trace& trace, frame_source* outer) noexcept
    : resource_{nullptr},
      keeps_below_{outer == nullptr || outer->is_shared() ? 0 : most_kept},
      outer_{outer},
      trace_{&trace} {}

frame_source::~frame_source() {
  WEFT_EXPECTS(live() == 0,
               "a frame from a scope's memory outlived the scope: a task, fork or generator that was made below it was "
               "kept, and its memory goes now");
  trim();
}

bool frame_source::trim() noexcept {
  if (is_shared()) return false;  // other threads may use the cache
  bool any = false;
  for (std::size_t i = 0; i != kept_sizes; ++i)
    if (void* const block = std::exchange(kept_[i], nullptr)) {
      resource_->deallocate(block, i * foreign_frame_alignment, foreign_frame_alignment);
      any = true;
    }
  return any;
}

namespace { constexpr std::size_t busy = ~(~std::size_t{0} >> 1); }

// How many frames of a source that is not shared are alive.
inline std::size_t frame_source::live_in_here() const noexcept {
  const std::size_t live = live_.load(std::memory_order_relaxed);  // as declared, like all below
  WEFT_EXPECTS((live & busy) == 0,
               "two threads use the memory of one scope at once, which was not declared shared: set .memory_is_shared, "
               "and give a resource that is");
  return live;
}

// Of a traced request: counts the frame, which comes from where it would without that.
[[gnu::noinline]] void* frame_source::allocate_traced(std::size_t size) {
  if (trace_part* const part = trace_->part_of(heap_of_thread)) {
    part->frames.add();
    part->frame_bytes.add(size);
  }
  if (resource_ != nullptr) return allocate_anew(foreign_frame_bytes(size));
  if (outer_ != nullptr) return outer_->allocate(size);
  const ambient_memory none{nullptr};
  return allocate_frame(size);
}

// Mostly a block was just freed and is there: that path calls nothing.
void* frame_source::allocate(std::size_t size) {
  if (trace_ != nullptr) [[unlikely]]
    return allocate_traced(size);
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

// The resource may have memory again once it has back the blocks that are kept.
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
  if (bytes < mine.keeps_below_ && !asan_watches()) [[likely]]  // which is to see each use after a frame's end
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
  if (outer_ != nullptr) return outer_->enter(where, here);
  const void* const user = where != nullptr ? static_cast<const void*>(where) : &here;
  const void* found = user_.load(std::memory_order_relaxed);  // as declared
  if (found == user) [[likely]]
    return;
  WEFT_EXPECTS(found == nullptr &&
                   user_.compare_exchange_strong(found, user, std::memory_order_relaxed, std::memory_order_relaxed),
               "two executors, or two threads of none, use the memory of one scope, which was not declared shared: "
               "set .memory_is_shared, and give a resource that is");
}

ambient_memory::ambient_memory(frame_source* source) noexcept : outer_{std::exchange(this_heap().memory, source)} {}
ambient_memory::~ambient_memory() { this_heap().memory = outer_; }

bool age_frame_memory(long now) noexcept {
  heap& mine = this_heap();
  const bool has_many = mine.age(now);
  if (mine.sent_much) {
    bool again = false;
    for (heap* one = newest_heap(); one != nullptr; one = one->made_before) again |= one->drain_at_times(now);
    mine.sent_much = again;
  }
  const bool many_slabs = slab_source::the_one().let_go_of_unused(now);
  return has_many || mine.sent_much || many_slabs;
}

bool age_frame_memory() noexcept { return age_frame_memory(coarse_milliseconds()); }

void begin_frame_memory(heap& here) noexcept {
  heap_of_thread = &here;
  if (!asan_watches()) front_of_thread = &here;  // else no frame is a worker's
}

void leave_frame_memory(heap& here) noexcept {
  heap_of_thread = nullptr;
  front_of_thread = &no_front;
  here.leave();
  if (std::exchange(here.sent_much, false)) drain_all();
}

}  // namespace weft::detail

namespace weft {

frame_memory_stats frame_memory_now() noexcept {
  return {detail::slab_source::the_one().bytes_in_use(), detail::this_heap().cached};
}

void trim_frame_memory() noexcept {
  detail::this_heap().sweep();
  detail::slab_source::the_one().let_go_of_all();
}

}  // namespace weft

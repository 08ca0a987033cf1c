#include "detail/heap.hpp"

#include <algorithm>
#include <ctime>
#include <mutex>
#include <new>

namespace weft::detail {

// Any block but the one on top. Apart, so that the way of that one saves no registers.
[[gnu::noinline]] void heap::free_below(void* block, std::size_t bytes) noexcept {
  const std::size_t size_class = class_of(bytes);
  if (heap& home = *slab::of(block)->owner; &home != this) [[unlikely]]
    return free_others(home, block, size_class, bytes);
  if (static_cast<std::byte*>(block) + bytes == below && bump == base) [[unlikely]]
    return step_back(static_cast<std::byte*>(block));
  lists[size_class] = ::new (block) free_block{lists[size_class], 0};
  cached += bytes;
  if (cached > look_at) [[unlikely]]
    look();
}

// What goes home is two read-modify-writes on words that its owner, and whoever else frees there, writes: shared out over
// some blocks.
[[gnu::noinline]] void heap::free_others(heap& home, void* block, std::size_t size_class, std::size_t bytes) noexcept {
  if (bytes > small) {
    auto& one = *::new (block) free_block{nullptr, size_class};
    return home.receive(one, one, bytes);
  }
  if (sends_to != &home) {
    send();
    sends_to = &home;
  }
  auto* const one = ::new (block) free_block{newest_to_send, size_class};
  if (newest_to_send == nullptr) oldest_to_send = one;
  newest_to_send = one;
  bytes_to_send += bytes;
  if (++blocks_to_send == most_together) send_all();
}

[[gnu::noinline]] void heap::send_all() noexcept {
  blocks_to_send = 0;
  free_block* const newest = std::exchange(newest_to_send, nullptr);
  sends_to->receive(*newest, *oldest_to_send, std::exchange(bytes_to_send, 0));
}

// By a thread that is not the owner's.
inline void heap::receive(free_block& newest, free_block& oldest, std::size_t bytes) noexcept {
  const std::size_t all = waiting.fetch_add(bytes, std::memory_order_relaxed) + bytes;  // before they are there
  returned.put(newest, oldest);
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
  slab* fresh = slab_source::the_one().take(*this, base != nullptr);
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
    for (plain<slab*>* link = &slabs; *link != nullptr;) {
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

bool heap::were_many_for_a_second() noexcept {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  const long milliseconds = now.tv_sec * 1000 + now.tv_nsec / 1'000'000;
  if (many_since == 0) many_since = milliseconds;
  return milliseconds - many_since >= 1000;
}

// A peak often comes again, and to walk over what it left costs a cache miss for each block.
[[gnu::noinline]] void heap::look() noexcept {
  if (cached > too_many || were_many_for_a_second()) return sweep();
  look_at = std::min(cached + slab::bytes, too_many);
}

bool heap::age() noexcept {
  send();
  if (cached <= many) {
    look_at = many;
    many_since = 0;
    return false;
  }
  if (!were_many_for_a_second()) return true;
  sweep();
  return false;
}

// Gives back the slabs of which every byte ever cut lies in a free list. Linear in the free blocks. Run at most once a
// second, or when those have doubled since the last time, so its cost is shared out over as many frees.
[[gnu::noinline]] void heap::sweep() noexcept {
  send();
  take_returned();
  {
    std::lock_guard guard{lock};
    if (current != nullptr) current->top = bump;
    for (slab* one = slabs; one != nullptr; one = one->next) one->freed = 0;
  }
  for (std::size_t c = 1; c < classes; ++c)
    for (free_block* block = lists[c]; block != nullptr; block = block->next) slab::of(block)->freed += bytes_of(c);

  const auto empty = [](slab* one) { return one->freed == one->cut(); };
  for (std::size_t c = 1; c < classes; ++c) {
    free_block* last = nullptr;  // of those that stay
    for (free_block* block = std::exchange(lists[c], nullptr); block != nullptr; block = block->next)
      if (empty(slab::of(block))) {
        cached -= bytes_of(c);
      } else {
        if (last != nullptr)
          last->next = block;
        else
          lists[c] = block;
        last = block;
      }
    if (last != nullptr) last->next = nullptr;
  }

  slab* gone = nullptr;
  {
    std::lock_guard guard{lock};
    bool none = current == nullptr;
    for (plain<slab*>* link = &slabs; *link != nullptr;)
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
  look_at = many = std::max(keep, 2 * cached);
  too_many = std::max(keep_for_a_second, 2 * cached);
  many_since = 0;
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

}  // namespace weft::detail

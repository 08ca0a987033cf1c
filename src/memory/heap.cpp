#include "memory/heap.hpp"

#include <algorithm>
#include <mutex>
#include <new>

namespace weft::detail {

// Frees any block but the one on top of the slab. Not inline, so that the path of that one saves no registers.
[[gnu::noinline]] void heap::free_below(void* block, std::size_t bytes) noexcept {
  const std::size_t size_class = class_of(bytes);
  if (heap& home = *slab::of(block)->owner; &home != this) [[unlikely]]
    return free_others(home, block, size_class, bytes);
  if (static_cast<std::byte*>(block) + bytes == below && bump == base) [[unlikely]]
    return step_back(static_cast<std::byte*>(block));
  lists[size_class] = ::new (block) free_block{lists[size_class], 0};
  cached += bytes;
  freed += bytes;
  if (freed > look_at) [[unlikely]]
    look();
}

// To send blocks home takes two read-modify-writes, on words that the owner and other threads write. So several blocks are
// sent together.
[[gnu::noinline]] void heap::free_others(heap& home, void* block, std::size_t size_class, std::size_t bytes) noexcept {
  if (bytes > small) {
    auto& one = *::new (block) free_block{nullptr, size_class};
    return deliver(home, one, one, bytes);
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
  deliver(*sends_to, *newest, *oldest_to_send, std::exchange(bytes_to_send, 0));
}

inline void heap::deliver(heap& home, free_block& newest, free_block& oldest, std::size_t bytes) noexcept {
  const std::size_t all = home.waiting.fetch_add(bytes, std::memory_order_relaxed) + bytes;  // before the put
  home.returned.put(newest, oldest);
  if (all <= home.keeps_waiting.load(std::memory_order_relaxed)) return;  // a hint
  sent_much = true;
  if (all > home.drain_at.load(std::memory_order_relaxed)) home.drain();  // the same
}

// The current slab has no room: takes blocks that came home, else a new slab. The rest of the old slab, less than one
// frame, is not used until that slab is empty.
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
  held.fetch_add(1, std::memory_order_relaxed);  // a count
  cut_from(fresh, fresh->begin() + bytes);
  return fresh->begin();
}

// Makes `one` the current slab, which frames are cut from; null: none is. Under the lock.
void heap::cut_from(slab* one, std::byte* at) noexcept {
  current = one;
  const slab* before = one != nullptr ? one->next : slabs;
  base = one != nullptr ? one->begin() : nullptr;
  end = one != nullptr ? one->end() : nullptr;
  bump = at;
  below = before != nullptr ? before->top : nullptr;
}

// The current slab is empty, and `block` is on top of the slab before it, which becomes the current one again. So a call
// chain of any depth unwinds along a stack of slabs, and none of its frames goes through a list.
[[gnu::noinline]] void heap::step_back(std::byte* block) noexcept {
  slab* empty;
  {
    std::lock_guard guard{lock};
    empty = current;
    if (empty != nullptr) {
      slabs = empty->next;
      held.fetch_sub(1, std::memory_order_relaxed);  // a count
    }
    cut_from(slabs, block);
  }
  if (empty != nullptr) slab_source::the_one().give_back(empty);
}

void heap::take_returned() noexcept {
  std::size_t bytes = 0;
  for (free_block* block = returned.take_newest_first(); block != nullptr;) {
    free_block* next = block->next;
    bytes += bytes_of(block->size_class);
    block->next = lists[block->size_class];
    lists[block->size_class] = block;
    block = next;
  }
  cached += bytes;
  freed += bytes;
  waiting.fetch_sub(bytes, std::memory_order_relaxed);
  stayed.store(0, std::memory_order_relaxed);  // a hint, as the next
  drain_at.store(keeps_waiting.load(std::memory_order_relaxed), std::memory_order_relaxed);
}

[[gnu::noinline]] void heap::drain() noexcept {
  if (!draining.try_lock()) return;
  drain_under_lock();
  draining.unlock();
}

bool heap::drain_at_times(long now) noexcept {
  if (waiting.load(std::memory_order_relaxed) <= keeps_waiting.load(std::memory_order_relaxed)) return false;  // hints
  if (!is_worth_a_drain()) return false;
  if (!draining.try_lock()) return true;
  const bool is_time = now - drained_at >= drain_patience;
  if (is_time) {
    drained_at = now;
    drain_patience = patience_after(drain_under_lock());
  }
  draining.unlock();
  return !is_time;
}

// Does a sweep's work for an owner that may be idle. It runs when much waits in `returned`, so its cost is amortized over as
// many frees, or after some time (patience_after()). No other thread can reach the blocks meanwhile. Returns how many there
// were.
std::size_t heap::drain_under_lock() noexcept {
  std::size_t blocks = 0;
  constexpr std::size_t whole = ~std::size_t{0};
  free_block* const all = returned.take_newest_first();
  for (free_block* block = all; block != nullptr; block = block->next) {
    slab::of(block)->drained += bytes_of(block->size_class);
    ++blocks;
  }

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
        held.fetch_sub(1, std::memory_order_relaxed);  // a count
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
  stayed.store(stays, std::memory_order_relaxed);
  drain_at.store(std::max(keeps_waiting.load(std::memory_order_relaxed), 2 * stays), std::memory_order_relaxed);
  while (gone != nullptr) slab_source::the_one().give_back(std::exchange(gone, gone->next));
  return blocks;
}

bool heap::were_many_for_long(long now) noexcept {
  if (many_since == 0) many_since = now;
  return now - many_since >= patience;
}

// A peak often comes again, and to walk over the blocks that it left costs a cache miss for each.
[[gnu::noinline]] void heap::look() noexcept {
  if (cached > too_many || (cached > keep && were_many_for_long(coarse_milliseconds()))) return sweep();
  look_later();
}

void heap::look_later() noexcept {
  if (cached <= keep) many_since = 0;
  look_at = freed + (cached < keep ? std::max(slab::bytes, keep - cached) : std::min(slab::bytes, too_many - cached));
}

bool heap::age(long now) noexcept {
  send();
  if (cached + waiting.load(std::memory_order_relaxed) <= keep)  // a count, as the next one
    many_since = 0;
  else if (is_worth_a_sweep() && were_many_for_long(now))
    sweep();
  return held.load(std::memory_order_relaxed) > keep / slab::bytes;
}

// Gives back the slabs all of whose blocks are in free lists. Linear in the free blocks. It runs when these have doubled
// since the last time, so its cost is amortized over as many frees, or when they have been many for long.
[[gnu::noinline]] void heap::sweep() noexcept {
  send();
  take_returned();
  {
    std::lock_guard guard{lock};
    if (current != nullptr) current->top = bump;
    for (slab* one = slabs; one != nullptr; one = one->next) one->freed = 0;
  }
  std::size_t blocks = 0;
  for (std::size_t c = 1; c < classes; ++c)
    for (free_block* block = lists[c]; block != nullptr; block = block->next, ++blocks)
      slab::of(block)->freed += bytes_of(c);

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
        held.fetch_sub(1, std::memory_order_relaxed);  // a count
      } else {
        link = &one->next;
      }
    cut_from(none ? nullptr : current, none ? nullptr : bump);
  }
  while (gone != nullptr) slab_source::the_one().give_back(std::exchange(gone, gone->next));
  swept_at = freed;
  too_many = std::max(keep_for_a_second, 2 * cached);
  many_since = 0;
  patience = patience_after(blocks);
  look_later();
}

// Moves the free blocks to `returned`, with those that others free from now on, so that a drain sees whole slabs.
void heap::hand_in_lists() noexcept {
  free_block *newest = nullptr, *oldest = nullptr;
  for (std::size_t c = 1; c < classes; ++c)
    for (free_block* block = std::exchange(lists[c], nullptr); block != nullptr;) {
      free_block* const next = block->next;
      newest = ::new (block) free_block{newest, c};
      if (oldest == nullptr) oldest = newest;
      block = next;
    }
  if (newest == nullptr) return;
  waiting.fetch_add(cached, std::memory_order_relaxed);  // a count; the other two are hints
  stayed.store(cached, std::memory_order_relaxed);
  drain_at.store(std::max(slab::bytes, 2 * std::exchange(cached, 0)), std::memory_order_relaxed);
  returned.put(*newest, *oldest);
}

// A heap without a thread has no owner that takes returned blocks, so few bytes may wait before a drain.
void heap::leave() noexcept {
  keeps_waiting.store(slab::bytes, std::memory_order_relaxed);
  sweep();
  hand_in_lists();
}

void heap::take_over() noexcept {
  keeps_waiting.store(keep, std::memory_order_relaxed);
  take_returned();
}

}  // namespace weft::detail

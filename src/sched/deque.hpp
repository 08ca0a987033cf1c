// A worker's own jobs, the newest first for itself, the oldest first for thieves.
//
// The owner pushes and pops at the bottom with plain loads and stores, also the last job: no fence, no read-modify-write,
// unless a thief has its hand on just the job that the owner wants. Thieves come one at a time.
//
//   thief   announces that it wants the top job (a mark on `top`), has a fence made on all processors, and only then reads
//           `bottom`. If the job is still there, it reads the slot and moves `top` on; else it takes the mark back
//   owner   moves `bottom` down, then reads `top`. If it sees no mark there, then a thief that comes later sees the new
//           `bottom`, and leaves the job alone. If the mark is on the very job, owner and thief race for it: whoever
//           moves `top` has it
//
// It grows beside its slots, whose number is fixed. When all are taken, the owner moves the older half to a store under a
// lock, at the price of one exchange: jobs that deep are a thousand pushes away from it. Thieves look into the store
// first, for the oldest are there; the owner comes to it when its slots are empty, and takes half a deque back at once.
//
// Rejected: (a) Chase and Lev's deque: the owner pays a read-modify-write for its last job, which is each one in a
// program that forks two and joins them. (b) Their growing buffer: old ones must be kept for thieves that still look, and
// the owner reads, for each push and each pop, where the buffer is. (c) Every thief makes a fence of its own: each
// interrupts all processors, and all but one in vain. (d) A full deque that refuses, so that its owner does the rest by
// itself: of ten thousand forks one in another, nine thousand would be for nobody else, however many have nothing to do.
//
// Source: D. Chase, Y. Lev, "Dynamic circular work-stealing deque", SPAA 2005; the mark is from Cilk's THE protocol (Frigo,
// Leiserson, Randall, PLDI 1998), without its lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <weft/detail/base/atomic.hpp>
#include <weft/detail/base/lock.hpp>

#include "base/fence.hpp"

namespace weft::detail {

/// What a thief comes home with.
enum class theft : unsigned char {
  nothing,  ///< the deque is empty
  lost,     ///< somebody else was faster, or is at it: there may be more
  done,
};

/// The oldest jobs of a deque that has more than it has slots for.
template <class T>
class deque_store {
 public:
  /// By the owner, with the lock: room for so many more. False: there is no memory.
  bool reserve(std::size_t more) noexcept {
    const std::size_t length = size_.load(std::memory_order_relaxed);  // as declared
    if (length + more <= room_) return true;
    std::size_t room = more;
    while (room < length + more) room *= 2;
    std::unique_ptr<T*[]> larger{new (std::nothrow) T*[room]};
    if (larger == nullptr) return false;
    for (std::size_t i = 0; i != length; ++i) larger[i] = at(first_ + i);
    first_ = 0;
    room_ = room;
    jobs_ = std::move(larger);
    return true;
  }
  /// By the owner, with the lock and room for it: one that is newer than the others.
  void put(T* one) noexcept {
    const std::size_t length = size_.load(std::memory_order_relaxed);  // as declared
    at(first_ + length) = one;
    size_.store(length + 1, std::memory_order_relaxed);  // as declared
  }
  /// With the lock, where there is one.
  T* newest() noexcept { return at(first_ + size_.load(std::memory_order_relaxed) - 1); }  // as declared
  T* take_newest() noexcept {
    T* const one = newest();
    one_less();
    return one;
  }
  T* take_oldest() noexcept {
    T* const one = at(first_);
    first_ = first_ + 1;
    one_less();
    return one;
  }

  /// A hint without the lock.
  std::size_t size() const noexcept { return size_.load(std::memory_order_relaxed); }  // as declared

  tiny_lock lock;

 private:
  friend struct debug_pool;

  T*& at(std::size_t index) noexcept { return jobs_[index & (room_ - 1)]; }
  void one_less() noexcept {
    const std::size_t left = size_.load(std::memory_order_relaxed) - 1;  // as declared
    size_.store(left, std::memory_order_relaxed);                        // as declared
    if (left != 0) return;
    jobs_.reset();
    room_ = 0;
  }

  // Written under the lock. Relaxed: who reads it without the lock takes it for a hint.
  atomic<std::size_t> size_{0};
  plain<std::size_t> first_ = 0;
  plain<std::size_t> room_ = 0;  // a power of two
  std::unique_ptr<T*[]> jobs_;
};

template <class T, std::size_t capacity>
class deque {
  static_assert((capacity & (capacity - 1)) == 0);

 public:
  /// By the owner. False: no slot was free when it last looked.
  bool push(T& one) noexcept {
    const std::uint64_t at = bottom_.load(std::memory_order_relaxed);  // the owner's own
    if (at - top_seen_ == capacity) [[unlikely]]
      return false;
    slots_[at % capacity].store(&one, std::memory_order_relaxed);  // published by the next line
    bottom_.store(at + 1, std::memory_order_release);              // -> push
    return true;
  }

  /// By the owner, after that: makes room first. False: there is no memory.
  [[gnu::noinline]] bool push_beyond(T& one) noexcept {
    return make_room(bottom_.load(std::memory_order_relaxed)) && push(one);  // the owner's own
  }

  /// By the owner: takes the newest job; null if there is none, or only in the store.
  T* pop() noexcept {
    const std::uint64_t at = bottom_.load(std::memory_order_relaxed) - 1;  // the owner's own
    bottom_.store(at, std::memory_order_release);  // -> push of those below (no model: see at its declaration)
    light_fence();
    const std::uint64_t top = top_.load(std::memory_order_relaxed);  // the slot is the owner's own
    if (static_cast<std::int64_t>(at - top / unit) > 0) [[likely]]
      return slots_[at % capacity].load(std::memory_order_relaxed);  // the owner's own
    return pop_last(at, top);
  }

  /// By the owner: takes the newest job if that is `one`. False: it is not, or a thief has just taken it.
  bool pop(const T& one) noexcept {
    return newest_is(one, bottom_.load(std::memory_order_relaxed) - 1) && pop() != nullptr;  // the owner's own
  }

  /// The same, but for the last job, for which this says no and changes nothing.
  bool pop_before_last(const T& one) noexcept {
    const std::uint64_t at = bottom_.load(std::memory_order_relaxed) - 1;  // the owner's own
    if (!newest_is(one, at)) [[unlikely]]
      return false;
    bottom_.store(at, std::memory_order_release);  // -> push of those below (no model: as in pop())
    light_fence();
    if (static_cast<std::int64_t>(at - top_.load(std::memory_order_relaxed) / unit) > 0) [[likely]]  // as in pop()
      return true;
    bottom_.store(at + 1, std::memory_order_release);  // -> push, once more (no model: as in pop())
    return false;
  }

  /// By the owner: as if it took `one`, did `change`, and pushed it again; all of it if that is the newest job, and not the
  /// last one. False: it is not, and nothing has changed.
  template <class Change>
  bool change_before_last(const T& one, Change change) noexcept {
    const std::uint64_t at = bottom_.load(std::memory_order_relaxed) - 1;  // the owner's own
    if (!newest_is(one, at)) [[unlikely]]
      return false;
    bottom_.store(at, std::memory_order_release);  // -> push of those below (no model: as in pop())
    light_fence();
    const bool mine = static_cast<std::int64_t>(at - top_.load(std::memory_order_relaxed) / unit) > 0;  // as in pop()
    if (mine) [[likely]]
      change();
    bottom_.store(at + 1, std::memory_order_release);  // -> push; where nothing has changed, as in pop_before_last()
    return mine;
  }

  /// By the owner, when pop() has found nothing: takes the newest of the store, and others from there into the slots.
  T* pop_stored() noexcept {
    if (stored_.size() == 0) [[likely]]
      return nullptr;
    return take_back(nullptr);
  }
  /// The same if that is `one`, and the newest of all.
  bool pop_stored(const T& one) noexcept {
    if (stored_.size() == 0 || in_slots() != 0) [[likely]]
      return false;
    return take_back(&one) != nullptr;
  }

  /// By any other thread: takes the oldest.
  theft steal(T*& taken) noexcept {
    if (stored_.size() != 0) [[unlikely]] {
      if (!stored_.lock.try_lock()) return theft::lost;
      const std::lock_guard guard{stored_.lock, std::adopt_lock};
      if (stored_.size() != 0) {
        taken = stored_.take_oldest();
        return theft::done;
      }
    }
    std::uint64_t top = top_.load(std::memory_order_relaxed);  // a guess: the exchange decides
    if (static_cast<std::int64_t>(bottom_.load(std::memory_order_relaxed) - top / unit) <= 0)  // the caller's look
      return theft::nothing;
    if ((top & wanted) != 0) return theft::lost;
    if (!top_.compare_exchange_strong(top, top | wanted, std::memory_order_relaxed,  // the fence has the order
                                      std::memory_order_relaxed))                    // somebody was faster
      return theft::lost;
    heavy_fence();
    const std::uint64_t at = top / unit;
    top |= wanted;
    if (static_cast<std::int64_t>(bottom_.load(std::memory_order_acquire) - at) <= 0) {  // <- push
      top_.compare_exchange_strong(top, at * unit, std::memory_order_relaxed,            // nothing was taken
                                   std::memory_order_relaxed);                           // the owner has moved it on
      return theft::nothing;
    }
    T* const one = slots_[at % capacity].load(std::memory_order_relaxed);  // bottom's edge
    if (!top_.compare_exchange_strong(top, (at + 1) * unit,
                                      std::memory_order_release,   // -> room (no model: see there)
                                      std::memory_order_relaxed))  // the owner took it
      return theft::lost;
    taken = one;
    return theft::done;
  }

  /// A hint; the truth behind a heavy_fence(), for what was pushed before a light_fence().
  bool empty() const noexcept { return size() == 0; }
  std::size_t size() const noexcept { return in_slots() + stored_.size(); }
  /// How many of these are not in the store.
  std::size_t in_slots() const noexcept {
    const auto all = static_cast<std::int64_t>(bottom_.load(std::memory_order_relaxed) -
                                               top_.load(std::memory_order_relaxed) / unit);  // a hint, as said
    return all > 0 ? static_cast<std::size_t>(all) : 0;
  }

 private:
  friend struct debug_pool;

  // `top` counts jobs taken from there, above a mark.
  static constexpr std::uint64_t wanted = 1, unit = 2;
  static constexpr std::size_t half = capacity / 2;

  // All slots are taken, or were when the owner last looked: the older half goes to the store. Whoever moves `top` has
  // what is below, also where a thief has its mark on the first of them.
  bool make_room(std::uint64_t at) noexcept {
    std::uint64_t top = top_.load(std::memory_order_acquire);  // <- room (no model: see there)
    top_seen_ = top / unit;
    if (at - top_seen_ != capacity) return true;
    const std::lock_guard guard{stored_.lock};
    if (!stored_.reserve(half)) return false;
    while (!top_.compare_exchange_weak(top, (top_seen_ + half) * unit,
                                       std::memory_order_acquire,     // <- room (no model: see there)
                                       std::memory_order_acquire)) {  // <- room (no model: see there)
      top_seen_ = top / unit;
      if (at - top_seen_ != capacity) return true;  // a thief has taken one
    }
    for (std::size_t moved = 0; moved != half; ++moved)
      stored_.put(slots_[top_seen_++ % capacity].load(std::memory_order_relaxed));  // the owner's own
    return true;
  }

  // The newest of the store, if it is the one wanted, or any will do; null: there is none. No slot is taken.
  [[gnu::noinline]] T* take_back(const T* wanted_one) noexcept {
    const std::lock_guard guard{stored_.lock};
    if (stored_.size() == 0 || (wanted_one != nullptr && stored_.newest() != wanted_one)) return nullptr;
    T* const newest = stored_.take_newest();
    T* older[half];
    std::size_t count = 0;
    while (count != half && stored_.size() != 0) older[count++] = stored_.take_newest();
    top_seen_ = top_.load(std::memory_order_acquire) / unit;  // <- room (no model: there is enough)
    while (count != 0) push(*older[--count]);
    return newest;
  }

  // Whether the newest job, which is or was `at` there, is `one`. It may have been, and thieves have taken all.
  bool newest_is(const T& one, std::uint64_t at) const noexcept {
    return slots_[at % capacity].load(std::memory_order_relaxed) == &one;  // the owner's own
  }

  // The last job, which a thief may want, or none.
  [[gnu::noinline]] T* pop_last(std::uint64_t at, std::uint64_t top) noexcept {
    while (top == at * unit + wanted)
      if (top_.compare_exchange_weak(top, (at + 1) * unit, std::memory_order_relaxed,  // the slot is the owner's own
                                     std::memory_order_relaxed)) {                     // a thief took it
        bottom_.store(at + 1, std::memory_order_relaxed);              // an empty deque publishes nothing
        return slots_[at % capacity].load(std::memory_order_relaxed);  // the owner's own
      }
    if (top == at * unit) return slots_[at % capacity].load(std::memory_order_relaxed);  // the owner's own
    bottom_.store(at + 1, std::memory_order_relaxed);  // it was empty, or a thief has just taken the last
    return nullptr;
  }

  //   edge push   the job, and all before it was pushed      ->  the thief that takes it
  //   edge room   a thief's last look at a slot              ->  the owner that fills it again
  // test/model/deque_model.cpp fails without the first and without either fence. It can't fail without `room`, since
  // relacy lets no load see a store that comes later, nor where pop() stores, since it knows release sequences of C++17.
  // What is in the store, its lock passes on.
  //   `bottom` is written by the owner alone, `top` by thieves, and by an owner that takes what a thief wants.
  alignas(64) atomic<std::uint64_t> bottom_{1};  // from 1: one below it is a number
  std::uint64_t top_seen_ = 1;                   // the owner's; what `top` was at least
  alignas(64) atomic<std::uint64_t> top_{1 * unit};
  deque_store<T> stored_;  // what is older than all slots
  alignas(64) atomic<T*> slots_[capacity]{};
};

}  // namespace weft::detail

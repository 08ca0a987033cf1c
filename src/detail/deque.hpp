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
// The deque has a fixed number of slots, and one that is full refuses: what can't be pushed is done by the owner itself,
// later, while thieves have a thousand jobs to choose from. So nothing is allocated, and no thief ever reads from a
// buffer that was replaced.
//
// Rejected: (a) Chase and Lev's deque: the owner pays a read-modify-write for its last job, which is each one in a
// program that forks two and joins them. (b) Their growing buffer: old ones must be kept for thieves that still look.
// (c) Every thief makes a fence of its own: each interrupts all processors, and all but one in vain.
//
// Source: D. Chase, Y. Lev, "Dynamic circular work-stealing deque", SPAA 2005; the mark is from Cilk's THE protocol (Frigo,
// Leiserson, Randall, PLDI 1998), without its lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <weft/detail/atomic.hpp>

#include "detail/fence.hpp"

namespace weft::detail {

/// What a thief comes home with.
enum class theft : unsigned char {
  nothing,  ///< the deque is empty
  lost,     ///< somebody else was faster, or is at it: there may be more
  done,
};

template <class T, std::size_t capacity>
class deque {
  static_assert((capacity & (capacity - 1)) == 0);

 public:
  /// By the owner. False: it is full.
  bool push(T& one) noexcept {
    const std::uint64_t at = bottom_.load(std::memory_order_relaxed);  // the owner's own
    if (at - top_seen_ == capacity) [[unlikely]] {
      top_seen_ = top_.load(std::memory_order_acquire) / unit;  // <- room (no model)
      if (at - top_seen_ == capacity) return false;
    }
    slots_[at % capacity].store(&one, std::memory_order_relaxed);  // published by the next line
    bottom_.store(at + 1, std::memory_order_release);              // -> push
    return true;
  }

  /// By the owner: takes the newest job; null if there is none.
  T* pop() noexcept {
    const std::uint64_t at = bottom_.load(std::memory_order_relaxed) - 1;  // the owner's own
    bottom_.store(at, std::memory_order_release);  // -> push of those below (no model): a thief goes by it from now on
    light_fence();
    const std::uint64_t top = top_.load(std::memory_order_relaxed);  // the slot is the owner's own
    if (static_cast<std::int64_t>(at - top / unit) > 0) [[likely]]
      return slots_[at % capacity].load(std::memory_order_relaxed);  // as above
    return pop_last(at, top);
  }

  /// By the owner: takes the newest job if that is `one`. False: it is not, or a thief has just taken it.
  bool pop(const T& one) noexcept { return newest_is(one) && pop() != nullptr; }

  /// The same, but for the last job, for which this says no and changes nothing.
  bool pop_before_last(const T& one) noexcept {
    const std::uint64_t at = bottom_.load(std::memory_order_relaxed) - 1;  // the owner's own
    if (!newest_is(one)) [[unlikely]]
      return false;
    bottom_.store(at, std::memory_order_release);  // -> push of those below (no model), as in pop()
    light_fence();
    if (static_cast<std::int64_t>(at - top_.load(std::memory_order_relaxed) / unit) > 0) [[likely]]  // as in pop()
      return true;
    bottom_.store(at + 1, std::memory_order_release);  // -> push (no model), once more, as in pop()
    return false;
  }

  /// By any other thread: takes the oldest.
  theft steal(T*& taken) noexcept {
    std::uint64_t top = top_.load(std::memory_order_relaxed);  // a guess: the exchange decides
    if (static_cast<std::int64_t>(bottom_.load(std::memory_order_relaxed) - top / unit) <= 0)  // the caller's look
      return theft::nothing;
    if ((top & wanted) != 0) return theft::lost;
    if (!top_.compare_exchange_strong(top, top | wanted, std::memory_order_relaxed,  // the fence has the order
                                      std::memory_order_relaxed))                    // as above
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
                                      std::memory_order_release,   // -> room (no model)
                                      std::memory_order_relaxed))  // the owner took it
      return theft::lost;
    taken = one;
    return theft::done;
  }

  /// A hint; the truth behind a heavy_fence(), for what was pushed before a light_fence().
  bool empty() const noexcept { return size() == 0; }
  std::size_t size() const noexcept {
    const auto all = static_cast<std::int64_t>(bottom_.load(std::memory_order_relaxed) -
                                               top_.load(std::memory_order_relaxed) / unit);  // as said
    return all > 0 ? static_cast<std::size_t>(all) : 0;
  }

 private:
  // `top` counts jobs taken from there, above a mark.
  static constexpr std::uint64_t wanted = 1, unit = 2;

  // Whether the newest job is `one`, or was, and thieves have taken all.
  bool newest_is(const T& one) const noexcept {
    const std::uint64_t at = bottom_.load(std::memory_order_relaxed);  // the owner's own, as the slot
    return slots_[(at - 1) % capacity].load(std::memory_order_relaxed) == &one;
  }

  // The last job, which a thief may want, or none.
  [[gnu::noinline]] T* pop_last(std::uint64_t at, std::uint64_t top) noexcept {
    while (top == at * unit + wanted)
      if (top_.compare_exchange_weak(top, (at + 1) * unit, std::memory_order_relaxed,  // the slot is the owner's own
                                     std::memory_order_relaxed)) {                     // as above
        bottom_.store(at + 1, std::memory_order_relaxed);              // an empty deque publishes nothing
        return slots_[at % capacity].load(std::memory_order_relaxed);  // as above
      }
    if (top == at * unit) return slots_[at % capacity].load(std::memory_order_relaxed);  // as above
    bottom_.store(at + 1, std::memory_order_relaxed);  // it was empty, or a thief has just taken the last
    return nullptr;
  }

  //   edge push   the job, and all before it was pushed      ->  the thief that takes it
  //   edge room   a thief's last look at a slot              ->  the owner that fills it again
  // test/model/deque_model.cpp fails without the first and without either fence. It can't fail without `room`, since
  // relacy lets no load see a store that comes later, nor where pop() stores, since it knows release sequences of C++17.
  //   `bottom` is written by the owner alone, `top` by thieves, and by an owner that takes what a thief wants.
  alignas(64) atomic<std::uint64_t> bottom_{1};  // from 1: one below it is a number
  std::uint64_t top_seen_ = 1;                   // the owner's; what `top` was at least
  alignas(64) atomic<std::uint64_t> top_{1 * unit};
  alignas(64) atomic<T*> slots_[capacity]{};
};

}  // namespace weft::detail

// The jobs that a worker of a pool has posted, first in first out, where other workers steal them.
//
// A task that was woken just now is hot in the caches, and the task that woke it mostly waits for it next. So it goes into
// a slot that is served before the line, and moves the job that was there to the end of the line. So that two tasks which
// wake each other do not starve the others, the slot is served only so many times in a row, and then the line is. A task
// that yields must not come before the slot, and goes to the end of the line.
//
// Thieves take half of the line. The job in the slot is best run by its own worker; but that one may be at one job for
// long, and then thieves take all.
//
// All of it lies under the worker's biased lock, so the line can grow in place. Jobs that do not fit go to the pool's
// injection queue. Only the owner's store to an empty slot needs no lock: a thief takes from the slot, under the lock, but
// never puts anything there, so a slot that the owner finds empty stays empty.
//
// Rejected: (a) a line of fixed size. Of 3000 tasks that took turns on one worker, two in three went through the
// injection queue each time, whose list is walked three times: 50 ns a turn instead of 18. (b) To prefetch,
// at a pop, the job that comes six later, and what one that comes three later will resume: no gain with 3000 tasks, nor
// with 1000.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>
#include <weft/detail/base/config.hpp>

#include "base/biased_lock.hpp"

namespace weft::detail {

/// `least` and `most`: how many the line has room for at first, and how many it grows to hold.
template <class T, std::uint32_t least, std::uint32_t most>
class run_queue {
  static_assert((least & (least - 1)) == 0 && (most & (most - 1)) == 0);

 public:
  /// What one thief takes at most.
  static constexpr std::size_t most_stolen = most / 2 < 64 ? most / 2 : 64;

  /// For leave_for(): does nothing with the jobs that come later.
  struct shows_none {
    void operator()(T&, T&) const noexcept {}
  };

  run_queue() = default;
  run_queue(const run_queue&) = delete;

  /// By the owner: puts a job at the end of the line. False: the line is full, and can't grow, for its limit or for want of
  /// memory.
  bool push(T& one) noexcept {
    lock_.enter();
    const bool fits = append(one);
    lock_.leave();
    return fits;
  }

  /// By the owner: puts a job into the slot. The job that was there goes to the end of the line, or is returned if there is
  /// no room. `first`: the queue was empty, so no other worker is needed at once.
  T* push_next(T& one, bool& first) noexcept {
    first = false;
    if (next_.load(std::memory_order_relaxed) != nullptr) [[unlikely]]  // a guess: looked at again
      return push_before(one);
    first = size_.load(std::memory_order_relaxed) == 0;  // a guess: thieves may take some
    next_.store(&one, std::memory_order_release);        // -> next
    return nullptr;
  }

  /// By the owner: how many more jobs fit, if there is memory. Perhaps more do, as thieves take some.
  std::size_t room() const noexcept { return most - in_line(); }
  /// Whether the slot is not empty. A hint: a thief may take the job. Behind a heavy_fence() it sees what was pushed before a
  /// light_fence().
  bool has_next() const noexcept { return next_.load(std::memory_order_relaxed) != nullptr; }  // a hint
  /// By the owner, for a job that must not overtake the one in the slot: moves that one to the end. False: there is no room.
  bool put_next_behind() noexcept {
    lock_.enter();
    T* const next = next_.load(std::memory_order_relaxed);  // the owner's own, if it is still there
    const bool fits = next == nullptr || append(*next);
    if (fits) next_.store(nullptr, std::memory_order_relaxed);  // thieves take it only under the lock
    lock_.leave();
    return fits;
  }

  /// By the owner: takes one; null if there is none.
  [[gnu::always_inline]] T* pop() noexcept {
    if (next_.load(std::memory_order_relaxed) != nullptr && turns_ != 0) [[likely]] {  // a guess: looked at again
      lock_.enter();
      T* const one = take_next();
      lock_.leave();
      turns_ = turns_ - 1;
      if (one != nullptr) [[likely]]
        return one;
    }
    return pop_in_turn();
  }

  /// By the owner, as it switches from `last` to another job: takes the first of the line, if the slot is empty and that
  /// job is `wanted`, and puts `last` at the end. Keeps the lock until has_left(), which must follow at once. Null: nothing
  /// has changed, and has_left() must not follow. Of a long line, two jobs that come later are given to `ahead` to be
  /// prefetched, the nearer one first.
  template <class Wanted, class Ahead = shows_none>
  [[gnu::always_inline]] T* leave_for(T& last, Wanted wanted, Ahead ahead = {}) noexcept {
    lock_.enter();
    if (end_ != first_ && !has_next()) [[likely]] {
      T* const one = slots_[first_ & mask_];
      if (wanted(*one)) [[likely]] {
        if (end_ - first_ > long_line) ahead(*slots_[(first_ + near) & mask_], *slots_[(first_ + far) & mask_]);
        slots_[end_ & mask_] = &last;  // perhaps into the entry of the job that was taken
        first_ = first_ + 1;
        end_ = end_ + 1;
        turns_ = most_in_a_row;
        return one;
      }
    }
    lock_.leave();
    return nullptr;
  }
  void has_left() noexcept { lock_.leave(); }

  /// By the owner, of a full line: takes its newest half, linked, the newest first. `how_many`: their number.
  T* spill(T*& oldest, std::size_t& how_many) noexcept {
    lock_.enter();
    const std::uint32_t from = end_ - (end_ - first_) / 2;
    how_many = end_ - from;
    T* newest = nullptr;
    for (std::uint32_t at = from; at != end_; ++at) {
      T* const one = slots_[at & mask_];
      one->next = newest;
      if (newest == nullptr) oldest = one;
      newest = one;
    }
    end_ = from;
    count();
    lock_.leave();
    return newest;
  }

  /// By any other thread: takes the oldest half of the line, or, with `all`, the whole of it and the job in the slot; but
  /// no more than `most_stolen`. How many.
  std::size_t steal(T** into, bool all) noexcept {
    if (!lock_.try_lock()) return 0;
    std::size_t taken = 0;
    const std::uint32_t length = end_ - first_;
    const std::uint32_t share = all ? length : (length + 1) / 2;
    for (std::uint32_t left = share; left != 0 && taken != most_stolen; --left) into[taken++] = take_first();
    if (all && taken != most_stolen)
      if (T* const one = next_.load(std::memory_order_acquire); one != nullptr) {  // <- next
        into[taken++] = one;
        next_.store(nullptr, std::memory_order_relaxed);  // it publishes nothing to the owner
      }
    count();
    lock_.unlock();
    return taken;
  }

  /// How many jobs are in the line. A hint; behind a heavy_fence() it counts all that were pushed before a light_fence().
  std::size_t in_line() const noexcept { return size_.load(std::memory_order_relaxed); }  // as declared
  bool empty() const noexcept { return in_line() == 0 && next_.load(std::memory_order_relaxed) == nullptr; }  // a hint
  /// How many jobs there are. A hint.
  std::size_t size() const noexcept {
    return in_line() + (next_.load(std::memory_order_relaxed) != nullptr ? 1 : 0);  // a hint
  }

 private:
  friend struct debug_pool;

  static constexpr unsigned most_in_a_row = 16;
  static constexpr std::uint32_t long_line = 64, near = 7, far = 15;  // what leave_for() shows

  // push_next() where the slot does not seem to be empty.
  WEFT_SELDOM T* push_before(T& one) noexcept {
    lock_.enter();
    T* const before = next_.load(std::memory_order_relaxed);  // the owner's own, if it is still there
    next_.store(&one, std::memory_order_relaxed);             // the lock has the order, where somebody takes it
    const bool fits = before == nullptr || append(*before);
    lock_.leave();
    return fits ? nullptr : before;
  }

  // pop() where the slot is empty, or was served often enough.
  [[gnu::noinline]] T* pop_in_turn() noexcept {
    if (empty()) return nullptr;  // a hint that holds: others only take
    lock_.enter();
    T* const one = end_ != first_ ? take_first() : take_next();
    count();
    lock_.leave();
    turns_ = most_in_a_row;
    return one;
  }

  T* take_next() noexcept {
    T* const one = next_.load(std::memory_order_relaxed);  // the owner's own
    next_.store(nullptr, std::memory_order_relaxed);       // thieves take it under the lock
    return one;
  }

  bool append(T& one) noexcept {
    if (end_ - first_ > mask_ && !grow()) [[unlikely]]
      return false;
    slots_[end_ & mask_] = &one;
    end_ = end_ + 1;
    count();
    return true;
  }
  T* take_first() noexcept {
    T* const one = slots_[first_ & mask_];
    first_ = first_ + 1;
    return one;
  }
  [[gnu::noinline]] bool grow() noexcept {
    const std::uint32_t room = 2 * (mask_ + 1);
    if (room > most) return false;
    std::unique_ptr<plain<T*>[]> more{new (std::nothrow) plain<T*>[room]};
    if (more == nullptr) return false;
    for (std::uint32_t at = first_; at != end_; ++at) more[at & (room - 1)] = slots_[at & mask_];
    slots_ = more.get();
    mask_ = room - 1;
    grown_ = std::move(more);
    return true;
  }
  void count() noexcept {
    size_.store(end_ - first_, std::memory_order_relaxed);  // as declared
  }

  biased_lock lock_;                       // guards all but the store to an empty slot, and the hint
  plain<unsigned> turns_ = most_in_a_row;  // how often the slot is still served before the line. The owner's
  // The slot. Written by the owner, which needs the lock if it is not empty, and under the lock by a thief that takes the
  // job.
  //   edge next  the job  ->  the worker that takes it out
  atomic<T*> next_{nullptr};
  // Of the line. Written under the lock. Relaxed: a hint, which the pairs of fences make true for who looks behind one.
  atomic<std::size_t> size_{0};
  plain<std::uint32_t> first_ = 0;
  plain<std::uint32_t> end_ = 0;
  plain<std::uint32_t> mask_ = least - 1;
  plain<plain<T*>*> slots_ = begun_;
  plain<T*> begun_[least]{};
  std::unique_ptr<plain<T*>[]> grown_;
};

}  // namespace weft::detail

// The jobs that were posted by a worker of a pool, in order: its own, and stealable.
//
// One that was woken just now is hot, and whoever woke it will mostly wait for it next; so it goes into a slot that is
// served before the others. It pushes the one that was there to the end of the line. So that two who wake each other do
// not starve the rest, the slot is served so many times in a row, and then waits its turn. One that yields must not come
// before it, and goes to the end behind it.
//
// Thieves take half of the line. What is in the slot is best left where it is; but its worker may be at one job for long,
// and then they take all.
//
// All of it lies under the worker's biased lock, so the line grows where it stands. What does not fit then goes to the
// pool's injection queue. Only what is put into an empty slot needs no lock: a thief takes from the slot, under the lock,
// but puts nothing there, so one that its owner finds empty stays so.
//
// Rejected: (a) a line of fixed size. Of 3000 tasks that took turns on one worker, two in three went through the
// injection queue each time, whose list is walked three times: 50 ns a turn instead of 18. (b) To have the caches fetch,
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

  /// For leave_for(): nothing is done with those that come later.
  struct shows_none {
    void operator()(T&, T&) const noexcept {}
  };

  run_queue() = default;
  run_queue(const run_queue&) = delete;

  /// By the owner: to the end. False: it is full, and there is no room or no memory for more.
  bool push(T& one) noexcept {
    lock_.enter();
    const bool fits = append(one);
    lock_.leave();
    return fits;
  }

  /// By the owner: next. What was next before goes to the end, and is what this gives if there is no room. `first`: there
  /// was nothing before, so a thief need not hurry.
  T* push_next(T& one, bool& first) noexcept {
    first = false;
    if (next_.load(std::memory_order_relaxed) != nullptr) [[unlikely]]  // looked at again
      return push_before(one);
    first = size_.load(std::memory_order_relaxed) == 0;  // what thieves take meanwhile is none of a post's concern
    next_.store(&one, std::memory_order_release);        // -> next
    return nullptr;
  }

  /// By the owner: how many more fit, if there is memory; perhaps more, as thieves take some.
  std::size_t room() const noexcept { return most - in_line(); }
  /// By the owner: whether something is next. A hint: a thief may take it.
  bool has_next() const noexcept { return next_.load(std::memory_order_relaxed) != nullptr; }  // a hint
  /// By the owner, for one that must not come before that: what is next goes to the end. False: there is no room.
  bool put_next_behind() noexcept {
    lock_.enter();
    T* const next = next_.load(std::memory_order_relaxed);  // the owner's own, if it is still there
    const bool fits = next == nullptr || append(*next);
    if (fits) next_.store(nullptr, std::memory_order_relaxed);  // as in take_next()
    lock_.leave();
    return fits;
  }

  /// By the owner: takes one; null if there is none.
  [[gnu::always_inline]] T* pop() noexcept {
    if (next_.load(std::memory_order_relaxed) != nullptr && turns_ != 0) [[likely]] {  // looked at again
      lock_.enter();
      T* const one = take_next();
      lock_.leave();
      turns_ = turns_ - 1;
      if (one != nullptr) [[likely]]
        return one;
    }
    return pop_in_turn();
  }

  /// By the owner, as it leaves `last` for another one: takes the first of the line, where nothing is next and that is
  /// `wanted`, and puts `last` at the end. Until has_left(), which must follow at once, nobody else takes anything. Null:
  /// nothing has changed, and nothing is to follow. Of a long line, two that come later are shown to `ahead`, the nearer one
  /// first, to be fetched.
  template <class Wanted, class Ahead = shows_none>
  [[gnu::always_inline]] T* leave_for(T& last, Wanted wanted, Ahead ahead = {}) noexcept {
    lock_.enter();
    if (end_ != first_ && !has_next()) [[likely]] {
      T* const one = slots_[first_ & mask_];
      if (wanted(*one)) [[likely]] {
        if (end_ - first_ > long_line) ahead(*slots_[(first_ + near) & mask_], *slots_[(first_ + far) & mask_]);
        slots_[end_ & mask_] = &last;  // perhaps in the place of that one
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

  /// By the owner: takes the newest half of the line, for who has more room: linked, the newest first, `how_many`.
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

  /// By any other thread: takes the oldest half of the line; with `all`, the whole of it, and what is next; but no more than
  /// `most_stolen`. How many.
  std::size_t steal(T** into, bool all) noexcept {
    if (!lock_.try_lock()) return 0;
    std::size_t taken = 0;
    const std::uint32_t length = end_ - first_;
    const std::uint32_t share = all ? length : (length + 1) / 2;
    for (std::uint32_t left = share; left != 0 && taken != most_stolen; --left) into[taken++] = take_first();
    if (all && taken != most_stolen)
      if (T* const one = next_.load(std::memory_order_acquire); one != nullptr) {  // <- next
        into[taken++] = one;
        next_.store(nullptr, std::memory_order_relaxed);  // by this the owner learns nothing
      }
    count();
    lock_.unlock();
    return taken;
  }

  /// How many there are, but for the one that is next. A hint; the truth behind a heavy_fence(), for what was pushed
  /// before a light_fence().
  std::size_t in_line() const noexcept { return size_.load(std::memory_order_relaxed); }  // as declared
  bool empty() const noexcept { return in_line() == 0 && next_.load(std::memory_order_relaxed) == nullptr; }  // a hint
  /// How many there are. A hint.
  std::size_t size() const noexcept {
    return in_line() + (next_.load(std::memory_order_relaxed) != nullptr ? 1 : 0);  // a hint
  }

 private:
  static constexpr unsigned most_in_a_row = 16;
  static constexpr std::uint32_t long_line = 64, near = 7, far = 15;  // what leave_for() shows

  // Where something seems to be next already.
  WEFT_SELDOM T* push_before(T& one) noexcept {
    lock_.enter();
    T* const before = next_.load(std::memory_order_relaxed);  // the owner's own, if it is still there
    next_.store(&one, std::memory_order_relaxed);             // the lock has the order, where somebody takes it
    const bool fits = before == nullptr || append(*before);
    lock_.leave();
    return fits ? nullptr : before;
  }

  // Where nothing is next, or others have waited long enough.
  [[gnu::noinline]] T* pop_in_turn() noexcept {
    if (empty()) return nullptr;  // thieves only take
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

  biased_lock lock_;                       // of all but what is put into the empty slot, and the hint
  plain<unsigned> turns_ = most_in_a_row;  // how often the slot is served before the line is. The owner's alone
  // The slot. Written by the owner, who needs the lock where it is not empty, and under the lock by a thief that takes it.
  //   edge next  the job  ->  who takes it out
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

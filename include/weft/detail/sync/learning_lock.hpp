// A biased lock for sections of a few instructions, which learns who takes it. Two tasks that hand each other values mostly
// run on one thread, so most channels are locked by one thread for long, and an atomic read-modify-write is half of what a
// send costs. A worker that has taken the lock so many times in a row becomes its owner, and pays two plain stores and two
// loads from then on.
//
//   owner    sets its flag, then looks whether it is the owner still. If the ownership was revoked, it clears the flag again
//            and takes the lock as all others do
//   another  takes the lock. If there is an owner, it revokes the ownership, has a fence made on all processors, and waits
//            until the flag of that owner is clear
//
// Of the two writes that precede the two reads, one is seen, so both are never inside. A worker whose ownership was revoked
// may set its flag once more, before it has looked. So each owner has a flag of its own, and there are as many owners, one
// after the other, as there are flags. Each has to take the lock eight times as often as the one before, so that the fences
// (130 to 400 ns) cost next to nothing per use. After the last owner it is a tiny_lock.
//
// The lock is never held over a call to foreign code, and a thread that finds it taken yields the processor rather than
// sleeps. Two threads that take it all the time would fetch the lock, and what lies under it, from each other's caches for
// each use, at ten times the cost of the use. So the lock also learns a back-off, which a thread that finds it taken waits
// before it looks again: longer, if the holder had taken the lock only a few times in a row; shorter, if it was found free.
// Then each thread has a turn of many uses in its own caches.
//
// Rejected: (a) an owner from the first use on: channels that live for one answer between two threads would pay a fence
// each. (b) One flag: a worker whose ownership was revoked would clear the flag of the next owner. (c) A back-off that grows
// each time that the lock is found taken within one wait: it is mostly found free after the first, short one, and so taken
// away too soon.
#pragma once

#include <atomic>
#include <cstdint>
#include <weft/detail/base/atomic.hpp>
#include <weft/detail/base/config.hpp>

namespace weft::detail {

struct worker;

class learning_lock {
 public:
  /// `enough` uses in a row make the first owner.
  explicit learning_lock(std::uint8_t enough = 32) noexcept : enough_{enough} {}
  learning_lock(const learning_lock&) = delete;

  void lock() noexcept;
  void unlock() noexcept { leave_by(entrance_); }

  /// Takes the lock. For sources of the library that have the worker at hand (src/sync/lock_here.hpp). Returns what
  /// leave_by() takes, by which the same function unlocks it.
  std::uintptr_t enter_on(const worker& here) noexcept;
  void leave_by(std::uintptr_t entrance) noexcept {
    inside_[entrance].store(false, std::memory_order_release);  // -> owned, or lent
  }
  /// After enter_on(): has another function unlock it, by unlock() or by leave_by(entrance()).
  void keep(std::uintptr_t entrance) noexcept { entrance_ = static_cast<std::uint8_t>(entrance); }
  std::uintptr_t entrance() const noexcept { return entrance_; }

 private:
  static constexpr std::uint8_t owners = 4, shared = owners;
  // Below the address of a worker: 0 if it was only the last to take the lock; of an owner, the index of its flag plus one.
  static constexpr std::uintptr_t low_bits = 7;

  WEFT_SELDOM std::uintptr_t enter_as_any(std::uintptr_t me) noexcept;
  WEFT_SELDOM std::uintptr_t enter_as_revoked(std::uintptr_t me, std::uintptr_t flag) noexcept;
  WEFT_SELDOM void wait_for_turn() noexcept;
  void transition_to_owned_by(std::uintptr_t me) noexcept;
  void transition_to_not_owned(std::uintptr_t me) noexcept;
  void wait_for_revoked(std::uintptr_t flag) noexcept;
  void learn_back_off(bool was_taken) noexcept;

  // A turn of so many uses is long enough: over them the cost of fetching what is under the lock is shared out.
  static constexpr std::uint32_t long_turn = 256;
  static constexpr std::uint8_t longest_back_off = 6;  // 8 us

  //   edge owned  what an owner changed     ->  the worker that revokes its ownership
  //   edge lent   what any other changed    ->  the next one, which may become the owner
  //
  // test/model/lock_model.cpp fails without either, and without one of the fences.
  atomic<std::uintptr_t> who_{
      0};  // a worker and the low bits. Written under the shared flag, whose edge `lent` carries it
  atomic<bool> inside_[owners + 1]{};      // the flag of each owner, and the one that all others share
  plain<std::uint8_t> entrance_ = shared;  // of the holder: the index of its flag. Under the lock, as all that follows
  plain<std::uint8_t> made_ = 0;           // owners so far
  const std::uint8_t enough_;              // uses in a row, for the first owner
  plain<std::uint32_t> in_a_row_ = 0;
  // The back-off: 128 ns, doubled so many times; 0: none. Written under the lock. Relaxed: a guess, which no edge depends on.
  // Last, so that what has a lock may put something behind it within the same word.
  atomic<std::uint8_t> back_off_{0};
};

}  // namespace weft::detail

// A lock for a few instructions that learns who takes it. Two that hand each other values mostly run on one thread, so most
// channels are locked by one thread for long, and an atomic read-modify-write is half of what a send costs. Who has taken
// the lock so many times in a row becomes its regular, and from then on pays two plain stores and two loads.
//
//   regular  says that it is inside, then looks whether it is the regular still; if not, it steps out again and takes the
//            lock like all others
//   another  takes the lock; if there is a regular, it dismisses it, has a fence made on all processors, and waits until
//            the one that was dismissed is not inside
//
// Of the two writes that precede the two reads, one is seen, so both are never in. One that was dismissed may still step in
// for a moment, before it has looked: so each regular has a flag of its own, and there are as many regulars, one after the
// other, as there are flags. Each has to come eight times as often as the one before, so that the fences (130 to 400 ns)
// cost next to nothing per use. After the last one it is a tiny_lock.
//
// Never held over a call to foreign code, and whoever finds it taken gives the processor away rather than sleeps. Two that
// are always at it would fetch the lock, and what lies under it, from each other's caches for each use, ten times as dear
// as the use. So the lock also learns for how long one that finds it taken is to keep away: longer, if those who have it
// were found at it after a few uses; shorter, if it was free. Then each has a turn of many uses in its own caches.
//
// Rejected: (a) a regular from the first use on: channels that live for one answer between two threads would pay a fence
// each. (b) One flag: the store by which one that was dismissed steps out would take away the mark of the next one. (c) To
// keep away for longer each time that it is found taken within one wait: mostly it is found free after the first, short
// one, and taken away too soon.
#pragma once

#include <atomic>
#include <cstdint>
#include <weft/detail/base/atomic.hpp>
#include <weft/detail/base/config.hpp>

namespace weft::detail {

struct worker;

class learning_lock {
 public:
  /// `enough` uses in a row make the first regular.
  explicit learning_lock(std::uint8_t enough = 32) noexcept : enough_{enough} {}
  learning_lock(const learning_lock&) = delete;

  void lock() noexcept;
  void unlock() noexcept { leave_by(entrance_); }

  /// By who gives it back where it took it, and has its worker at hand: gives what leave_by() takes. Only for the library's
  /// sources: src/sync/lock_here.hpp.
  std::uintptr_t enter_on(const worker& here) noexcept;
  void leave_by(std::uintptr_t entrance) noexcept {
    inside_[entrance].store(false, std::memory_order_release);  // -> owned, or lent
  }
  /// By the same: somebody else gives it back, by unlock(); or by leave_by(entrance()).
  void keep(std::uintptr_t entrance) noexcept { entrance_ = static_cast<std::uint8_t>(entrance); }
  std::uintptr_t entrance() const noexcept { return entrance_; }

 private:
  static constexpr std::uint8_t regulars = 4, common = regulars;
  // Below the address of a worker: 0 if it was only the last to take the lock; of a regular, its flag and one.
  static constexpr std::uintptr_t low_bits = 7;

  WEFT_SELDOM std::uintptr_t enter_as_any(std::uintptr_t me) noexcept;
  WEFT_SELDOM std::uintptr_t enter_as_dismissed(std::uintptr_t me, std::uintptr_t flag) noexcept;
  WEFT_SELDOM void wait_for_turn() noexcept;
  void learn_from_turn(bool was_taken) noexcept;

  // Turns so long are long enough: what it costs to fetch all that is under the lock is shared out over as many uses.
  static constexpr std::uint32_t long_turn = 256;
  static constexpr std::uint8_t most_patience = 6;  // 8 us

  //   edge owned  what a regular changed    ->  who has dismissed it
  //   edge lent   what any other changed    ->  the next one, who may make itself the regular
  //
  // test/model/lock_model.cpp fails without either, and without one of the fences.
  atomic<std::uintptr_t> who_{0};  // a worker and the low bits. Written by who has taken the lock; `lent` carries it
  atomic<bool> inside_[regulars + 1]{};    // of each regular, and whether any other has taken the lock
  plain<std::uint8_t> entrance_ = common;  // of who keeps it: a regular's flag. Under the lock, as all that follows
  plain<std::uint8_t> made_ = 0;           // regulars so far
  const std::uint8_t enough_;              // for the first one
  plain<std::uint32_t> in_a_row_ = 0;
  // For how long to keep away: 128 ns, doubled so many times; 0: not at all. Written under the lock. A guess, no edge. Last,
  // so that an owner may put something behind it within the same word.
  atomic<std::uint8_t> patience_{0};
};

}  // namespace weft::detail

// How long a worker that has found no job spins before it parks: 1/24 of its recent busy time, 20 to 250 us, as its budget.
//
// Work of some milliseconds is often followed by more, once whoever waited for it has looked at the result. A worker that
// has parked meanwhile is woken for that, which takes 10 to 50 us on two processors, and a virtual processor that has slept
// runs up to a twentieth slower for some milliseconds. But a worker that spins holds a processor for nothing: so it may spin
// for a small part of the time for which it was busy. A worker whose jobs take microseconds parks at once.
//
// It yields its processor before each look: the thread that waited for its work may have been woken on just that processor.
// Where it gets the processor back late, another program wants it, too, and a job that comes meanwhile waits, since a
// worker that searches keeps others from being woken. Then it does not spin for 10 sleeps, and twice as many each time; half
// as many after each time that went well.
#pragma once

#include <algorithm>
#include <cstdint>

namespace weft::detail {

class spin_budget {
 public:
  /// It has found something. Times are nanoseconds of any clock that goes on from above 0.
  void is_busy(std::uint64_t now) noexcept { busy_since_ = now; }
  /// It is through with that, and with all that came of it.
  void is_idle(std::uint64_t now) noexcept {
    if (busy_since_ != 0) left_ = std::min(left_ + (now - busy_since_) / share, most);
    busy_since_ = 0;
  }
  /// For how long it may spin, in nanoseconds.
  std::uint64_t left() const noexcept { return pause_ == 0 && left_ >= least ? left_ : 0; }
  /// It has spun for so long, and had its processor back after `longest` at worst.
  void was_used(std::uint64_t nanoseconds, std::uint64_t longest) noexcept {
    left_ -= std::min(nanoseconds, left_);
    if (longest < dear) {
      next_pause_ = std::max(next_pause_ / 2, shortest_pause);
      return;
    }
    pause_ = next_pause_;
    next_pause_ = std::min(next_pause_ * 2, longest_pause);
  }
  /// It has slept. `by_event`: until a socket was ready, for which it had better sleep next time, too.
  void has_slept(bool by_event) noexcept {
    if (by_event) left_ = 0;
    if (pause_ != 0) --pause_;
  }

 private:
  static constexpr std::uint64_t share = 24;                      // one nanosecond for so many of busy time
  static constexpr std::uint64_t least = 20'000, most = 250'000;  // ns
  static constexpr std::uint64_t dear = 700'000;                  // ns: less than the turn that a program has
  static constexpr unsigned shortest_pause = 10, longest_pause = 10'000;

  std::uint64_t busy_since_ = 0;  // 0: it is not
  std::uint64_t left_ = 0;
  unsigned pause_ = 0;  // sleeps until it may do it again
  unsigned next_pause_ = shortest_pause;
};

}  // namespace weft::detail

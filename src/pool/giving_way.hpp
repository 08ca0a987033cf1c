// Whether a worker that has found nothing gives its processor away some times before it sleeps. Where two take turns, the
// one that waits is then back without a wake-up, which costs the other a system call and both a switch; on a processor that
// nobody else wants it is back at once.
//
// Who gives it away beside other programs may wait for it until they have used up theirs, which is milliseconds, where one
// that is woken mostly has it at once. So a worker does it only while it is woken soon after it has fallen asleep, and when
// that cost it dear, not again for so many sleeps, each time twice as many.
#pragma once

#include <algorithm>
#include <cstdint>

namespace weft::detail {

class giving_way {
 public:
  static constexpr unsigned times = 20;

  bool is_worth_it() const noexcept { return short_sleeps_ == enough && pause_ == 0; }

  /// The worker has slept, for so many nanoseconds.
  void slept(std::uint64_t nanoseconds) noexcept {
    short_sleeps_ = nanoseconds < soon ? std::min(short_sleeps_ + 1, enough) : 0;
    if (pause_ != 0) --pause_;
  }

  /// It gave its processor away, and had it back after so many nanoseconds. False: it had better sleep.
  bool came_back(std::uint64_t nanoseconds) noexcept {
    if (nanoseconds < dear) return true;
    pause_ = next_pause_;
    next_pause_ = std::min(next_pause_ * 2, longest_pause);
    return false;
  }
  /// It found a job meanwhile.
  void was_worth_it() noexcept { next_pause_ = std::max(next_pause_ - 1, shortest_pause); }

 private:
  static constexpr std::uint64_t soon = 50'000, dear = 200'000;  // ns
  static constexpr unsigned enough = 8, shortest_pause = 100, longest_pause = 100'000;

  unsigned short_sleeps_ = 0;  // in a row
  unsigned pause_ = 0;         // sleeps until it may do it again
  unsigned next_pause_ = shortest_pause;
};

}  // namespace weft::detail

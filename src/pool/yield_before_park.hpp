// Whether a worker that has found no job calls sched_yield() some times before it parks: it does if other threads have ended
// its recent sleeps, each within 50 us. Where two threads take turns, the one that waits is then back without a wake-up, which
// costs the other one a system call and both a switch; on a processor that nobody else wants it is back at once. Where it was
// a socket that ended them, it does not: in an epoll set a search does not ask the system about sockets, so it would not see
// the next one.
//
// Beside other programs a thread that yields may wait until they have used up their time slices, which is milliseconds; one
// that is woken mostly runs at once. So where the processor came back late, the worker does not yield for 100 sleeps, and
// twice as many each time.
#pragma once

#include <algorithm>
#include <cstdint>

namespace weft::detail {

class yield_before_park {
 public:
  static constexpr unsigned times = 20;

  bool is_worth_it() const noexcept { return short_sleeps_ == enough && pause_ == 0; }

  /// The worker has slept, for so many nanoseconds; `by_event`: until a socket was ready.
  void slept(std::uint64_t nanoseconds, bool by_event) noexcept {
    short_sleeps_ = !by_event && nanoseconds < soon ? std::min(short_sleeps_ + 1, enough) : 0;
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

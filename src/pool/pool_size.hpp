// Of a pool with more threads than processors, how many of them may be awake: decided by the one of those asleep that
// watches, while jobs wait, from what happened since its last look. As many are awake as there are processors, and more
// where those awake wait for something else (a file, a lock), or where one has got nowhere for long: it computes, or waits
// for what has not begun. It may be for as long as it likes, so each such one has another in its place. No more than the
// program wants, if it has said so.
//
// Rejected: trying sizes and keeping the one with which most jobs ended (jobs differ, machines are noisy, and each trial is
// a time at a worse size); all, always: each burst wakes them all, one by the other, and sixteen on two processors took up
// to a third longer than two; or never more than there are processors: what blocks would have fewer threads than the program
// asked for; a thread that does nothing but decide (a pool of adaptive size had one): the one that watches sees the same.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>

namespace weft::detail {

/// What the threads that were awake did in one period.
struct pool_load {
  double nanoseconds = 0;     // how long it was
  double can_run = 0;         // threads that had a processor, or waited for one: in the mean
  double processor_time = 0;  // nanoseconds, of all
  double awake = 0;           // threads that were, in the mean
  unsigned standing = 0;      // how many have got nowhere for longer than crowd::too_long_standing
};

class crowd {
 public:
  static constexpr std::chrono::milliseconds too_long_standing{20};
  static constexpr std::chrono::microseconds first_nap{200};  // of who watches

  crowd(unsigned workers, unsigned processors) noexcept
      : workers_{workers}, processors_{std::min(processors, workers)}, most_{workers}, awake_{processors_} {}

  unsigned most_awake() const noexcept { return awake_; }

  /// No more than so many from now on; 0: as many as there are. How many may be awake.
  unsigned limit(unsigned most) noexcept {
    most_ = most == 0 ? workers_ : std::min(most, workers_);
    return awake_ = std::clamp(awake_, least(), most_);
  }
  bool is_limited() const noexcept { return most_ != workers_; }

  /// How long the one that watches sleeps; `again`: it has slept, and nothing has come of it.
  std::chrono::microseconds next_nap(bool again) noexcept {
    nap_ = again ? std::min(2 * nap_, longest_nap) : first_nap;
    return nap_;
  }

  /// How many may be awake from now on. There are jobs that wait.
  unsigned next(const pool_load& last) noexcept {
    const bool some_block = last.can_run < 0.9 * last.awake;
    const double busy = last.processor_time / last.nanoseconds;
    if (some_block && busy < 0.9 * processors_)
      awake_ = static_cast<unsigned>(std::ceil(awake_ * std::clamp(processors_ / std::max(busy, 0.1), 1.0, 2.0)));
    else if (!some_block || last.can_run > 3 * processors_)
      awake_ -= std::max(1u, (awake_ - least()) / 2);
    return awake_ = std::clamp(awake_, std::min(processors_ + last.standing, most_), most_);
  }

 private:
  static constexpr std::chrono::microseconds longest_nap{5000};

  unsigned least() const noexcept { return std::min(processors_, most_); }

  const unsigned workers_, processors_;
  unsigned most_, awake_;
  std::chrono::microseconds nap_{};
};

}  // namespace weft::detail

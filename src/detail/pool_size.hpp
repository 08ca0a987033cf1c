// How many threads of a pool are to take part: decided now and then, from what happened since.
//
// Of adaptive size (pool_size), every few milliseconds:
//
//   more    jobs wait for long (their number over the rate at which jobs are run), threads wait for something else than a
//           processor (a file, a lock), and a tenth of the processors is idle: as many more as that is, at most twice as
//           many
//   fewer   all can run, and are more than there are processors, or three times as many as processors can; or most jobs
//           are stolen, and so short that the way to another thread takes longer than they do
//
// What block now and then meet: at times three can run, at others none, so threads that wait for a processor are no sign
// that none is idle.
//
// Of more threads than processors (crowd), by the one of those asleep that watches, while jobs wait: as many are awake as
// there are processors, and more where those awake wait for something else, as above, or where one has got nowhere for
// long: it computes, or waits for what has not begun. It may be for as long as it likes, so each such one has another in
// its place.
//
// Rejected: trying sizes and keeping the one with which most jobs ended (jobs differ, machines are noisy, and each trial is
// a time at a worse size); more threads as soon as jobs wait (a recursion always has some that wait); of more threads than
// processors all, always: each burst wakes them all, one by the other, and sixteen on two processors took up to a third
// longer than two; or never more than there are processors: what blocks would have fewer threads than the program asked for.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace weft::detail {

/// What those threads did in one period that take part.
struct pool_load {
  double nanoseconds = 0;  // how long it was
  std::uint64_t jobs = 0;
  std::uint64_t steals = 0;
  std::size_t waiting = 0;    // jobs and forks that nobody had begun, at its end
  double can_run = 0;         // threads that had a processor, or waited for one: in the mean
  double processor_time = 0;  // nanoseconds, of all
  double awake = 0;           // threads that were, in the mean
  unsigned standing = 0;      // how many have got nowhere for longer than crowd::too_long_standing
};

class pool_size {
 public:
  pool_size(unsigned least, unsigned most, unsigned processors) noexcept
      : least_{least},
        most_{most},
        processors_{processors},
        size_{std::clamp(processors, least, most)},
        can_run_{static_cast<double>(processors)},
        busy_{static_cast<double>(processors)} {}

  unsigned size() const noexcept { return size_; }

  /// The size from now on.
  unsigned next(const pool_load& last) noexcept {
    can_run_ += (last.can_run - can_run_) / 4;
    const double busy = last.processor_time / last.nanoseconds;
    busy_ += (busy - busy_) / 4;
    const double delay = static_cast<double>(last.waiting) * last.nanoseconds / static_cast<double>(last.jobs + 1);
    delays_ = delay > long_delay ? delays_ + 1 : 0;
    const bool tiny = last.jobs != 0 && last.processor_time / static_cast<double>(last.jobs) < tiny_job;
    thefts_ = tiny && last.steals > last.jobs / 2 ? thefts_ + 1 : 0;
    if (patience_ != 0) --patience_;

    if (thefts_ == in_a_row) {
      thefts_ = 0;
      patience_ = calm;
      return size_ = std::max(size_ - 1, least_);
    }
    // Of those that block now and then, three times as many as processors may meet; of those that don't, none need to.
    if (size_ > processors_ && (can_run_ > 3 * processors_ || can_run_ > size_ - 0.5)) {
      const double too_many = std::min<double>(can_run_, size_) - processors_;
      return size_ = std::max(size_ - std::max(1u, static_cast<unsigned>(too_many / 2)), least_);
    }
    const bool some_block = size_ < processors_ || std::max(can_run_, last.can_run) < size_ - 0.5;
    if (delays_ >= 2 && patience_ == 0 && some_block && std::max(busy_, busy) < 0.9 * processors_ &&
        can_run_ - busy_ < processors_) {
      const unsigned more =
          std::clamp(static_cast<unsigned>(size_ * (processors_ / std::max(busy_, 0.1) - 1)), 1u, size_);
      size_ = std::min({size_ + more, size_ < processors_ ? processors_ : most_, most_});
    }
    return size_;
  }

 private:
  static constexpr double long_delay = 20'000;        // ns: some times what it takes to wake a thread
  static constexpr double tiny_job = 1'000;           // ns: what a steal takes
  static constexpr unsigned in_a_row = 4, calm = 40;  // periods

  const unsigned least_, most_, processors_;
  unsigned size_;
  double can_run_, busy_;  // threads, and processors of theirs: means of the last periods, the newer the more
  unsigned delays_ = 0, thefts_ = 0;  // periods in a row
  unsigned patience_ = 0;             // periods until it may grow again
};

class crowd {
 public:
  static constexpr std::chrono::milliseconds too_long_standing{20};
  static constexpr std::chrono::microseconds first_nap{200};  // of who watches

  crowd(unsigned workers, unsigned processors) noexcept
      : workers_{workers}, processors_{std::min(processors, workers)}, awake_{processors_} {}

  unsigned most_awake() const noexcept { return awake_; }

  /// How long the one that watches sleeps; `again`: it has slept, and nothing has come of it.
  std::chrono::microseconds next_nap(bool again) noexcept {
    nap_ = again ? std::min(2 * nap_, longest_nap) : first_nap;
    return nap_;
  }

  /// How many may be awake from now on. There are jobs that wait.
  unsigned next(const pool_load& last) noexcept {
    const unsigned least = std::min(processors_ + last.standing, workers_);
    const bool some_block = last.can_run < 0.9 * last.awake;
    const double busy = last.processor_time / last.nanoseconds;
    if (some_block && busy < 0.9 * processors_)
      awake_ = static_cast<unsigned>(std::ceil(awake_ * std::clamp(processors_ / std::max(busy, 0.1), 1.0, 2.0)));
    else if (!some_block || last.can_run > 3 * processors_)
      awake_ -= std::max(1u, (awake_ - processors_) / 2);
    return awake_ = std::clamp(awake_, least, workers_);
  }

 private:
  static constexpr std::chrono::microseconds longest_nap{5000};

  const unsigned workers_, processors_;
  unsigned awake_;
  std::chrono::microseconds nap_{};
};

}  // namespace weft::detail

// After how many jobs a worker that has more of them looks at its sockets: 61, a prime, so that it does not beat with what programs
// do; or fewer where jobs are long, so that it looks every 5 ms or so. Told from how long its jobs took since its last look, so no
// clock is read between two looks, and jobs that are suddenly long are found out once 61 of them have run.
//
// Rejected: a timer that has the next one who is through with a job look. Such a timer would run wherever jobs do, also for one
// worker, which needs none otherwise.
#pragma once

#include <algorithm>
#include <cstdint>

namespace weft::detail {

class look_pace {
 public:
  static constexpr std::uint32_t most_jobs = 61;

  /// Times are nanoseconds of any clock.
  explicit look_pace(std::uint64_t now) noexcept : since_{now} {}

  /// By the worker, which looks now, and has run so many jobs since it looked last: after how many it looks again.
  std::uint32_t looked(std::uint64_t now, std::uint64_t ran) noexcept {
    const std::uint64_t busy = std::max<std::uint64_t>(now - since_, 1);
    since_ = now;
    if (ran != 0)
      jobs_ = static_cast<std::uint32_t>(
          std::clamp<std::uint64_t>(ran * longest / busy, 1, std::min(2 * jobs_, most_jobs)));
    return jobs_;
  }
  /// It had no job for so long, and looked meanwhile.
  void was_idle(std::uint64_t nanoseconds) noexcept { since_ += nanoseconds; }

 private:
  static constexpr std::uint64_t longest = 5'000'000;  // ns

  std::uint64_t since_;  // when it looked last, later by the time for which it had no job since
  std::uint32_t jobs_ = most_jobs;
};

}  // namespace weft::detail

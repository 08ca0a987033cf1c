// A rate limit. What holds for all primitives stands in sync.hpp.
#pragma once

#include <cstddef>
#include <weft/detail/base/duration.hpp>
#include <weft/detail/core/timer.hpp>
#include <weft/detail/core/waiter.hpp>
#include <weft/detail/sync/gate.hpp>
#include <weft/sync_stats.hpp>
#include <weft/task.hpp>

namespace weft {

/// How many tokens come, and how many are kept.
struct token_bucket_options {
  std::size_t rate;  ///< so many tokens come in `per`, evenly
  detail::time_span per = std::chrono::seconds{1};
  std::size_t burst = 1;  ///< so many the bucket holds; what would come on top is lost
};

/// Limits a rate: tokens come at a steady pace, and whoever does something takes one first, or several.
///
///     weft::token_bucket limit{{.rate = 100, .burst = 20}};  // 100 a second, at most 20 at once
///     co_await limit.take();
///
/// It is full at first. Tokens are counted in exact fractions: whoever takes them in time gets `rate` of them in each `per`.
/// In any time t at most `burst + t * rate / per` are taken, t rounded up to ticks of the clock.
///
/// Misuse    a rate, a period or a burst that is not above zero ends the program with a sentence.
/// Threads   any. All that use one sleep by the same clock.
/// Source    the token bucket of Turner, "New directions in communications", IEEE Communications Magazine 24:10 (1986).
class token_bucket : detail::gate {
 public:
  explicit token_bucket(const token_bucket_options& options) noexcept;  ///< full at first
  /// Ends the program if somebody waits for tokens.
  ~token_bucket();

  /// Takes `count` tokens, once there are so many. Who wants many is not overtaken by who wants few.
  ///
  /// Suspends  unless they are there and nobody waits; resumes on its own executor. The first in line sleeps by the clock of
  ///           its environment, and on its way out serves those behind it.
  /// Cancel    leaves the line, and has taken nothing. Tokens that were given already win: none is lost. Where it is one side
  ///           of a race (`timeout`, `when_any`), both sides may end at the same instant, and the tokens are taken then.
  /// Fails     with std::errc::invalid_argument, where `count` is more than the bucket holds: they would never be there.
  /// Cost      a frame and a lock; to read the clock. Waiting arms one timer for all that are in line.
  [[nodiscard("nothing happens until it is awaited")]] task<> take(std::size_t count = 1);
  /// Whether it has taken them. Never waits, and never overtakes. Fails as take() does.
  [[nodiscard]] bool try_take(std::size_t count = 1);

  /// Whole tokens that are there; over when it is read.
  std::size_t available() const noexcept;
  /// Of those that wait behind the first one; over when it is read. Costs its lock, and a walk along the line.
  using gate::stats;

 private:
  class awaiter;
  class place;
  // A token is `per_` parts, of which `rate_` come in each tick of the clock. Wide enough for every product of the two.
  __extension__ using parts = unsigned __int128;

  void expect_room_for(std::size_t count) const;
  parts filled(timer::time_point now) const noexcept;
  bool has_taken(std::size_t count, timer::time_point now) noexcept;
  timer::time_point due(std::size_t count) const noexcept;
  void pass_on(timer::time_point now) noexcept;

  // All under the lock.
  const std::size_t rate_, burst_;
  const parts per_;
  parts level_;  // at that time:
  timer::time_point level_at_{};
  bool has_first_ = false;  // somebody sleeps until there are tokens; the line is of those behind
};

}  // namespace weft

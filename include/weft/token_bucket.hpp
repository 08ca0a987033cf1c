// A rate limit. What holds for all primitives stands in sync.hpp.
#pragma once

#include <cstddef>
#include <weft/detail/base/duration.hpp>
#include <weft/detail/core/waiter.hpp>
#include <weft/detail/sync/gate.hpp>
#include <weft/sync_stats.hpp>
#include <weft/task.hpp>
#include <weft/timer.hpp>

namespace weft {

/// The options of a token_bucket.
struct token_bucket_options {
  std::size_t rate;  ///< how many tokens come within `per`, evenly
  detail::time_span per = std::chrono::seconds{1};
  std::size_t burst = 1;  ///< how many tokens the bucket holds; further ones are lost
};

/// Limits a rate: tokens come at a steady pace, and each action takes one or several before it.
///
///     weft::token_bucket limit{{.rate = 100, .burst = 20}};  // 100 a second, at most 20 at once
///     co_await limit.take();
///
/// It is full at first. Tokens are counted in exact fractions, so none is lost to rounding. Within any time t at most
/// `burst + t * rate / per` tokens are taken, where t is rounded up to ticks of the clock.
///
/// Misuse    a rate, a period or a burst that is not above zero ends the program with a sentence.
/// Threads   any. All users of a bucket have the same clock.
/// Source    the token bucket of Turner, "New directions in communications", IEEE Communications Magazine 24:10 (1986).
class token_bucket : detail::gate {
 public:
  explicit token_bucket(const token_bucket_options& options) noexcept;  ///< full at first
  /// Ends the program with a sentence if somebody waits for tokens.
  ~token_bucket();

  /// Waits until there are `count` tokens, and takes them. A waiter for many is not overtaken by those that want few.
  ///
  /// Suspends  unless the tokens are there and nobody waits; resumes on its own executor. The first in line sleeps by the clock
  ///           of its environment, and serves those behind it when it leaves.
  /// Cancel    leaves the line, and has taken nothing, unless it was given its tokens before. As one side of a race (`timeout`,
  ///           `when_any`) it may end at the same instant as the other side; the tokens are taken then.
  /// Fails     with std::errc::invalid_argument where `count` is more than the bucket holds.
  /// Cost      a frame, a lock, and a reading of the clock. One timer serves all waiters.
  [[nodiscard("nothing happens until it is awaited")]] task<> take(std::size_t count = 1);
  /// Takes the tokens if they are there and nobody waits; gives whether it has. Never waits. Fails as take().
  [[nodiscard]] bool try_take(std::size_t count = 1);

  /// How many whole tokens are there; may have changed when it is returned.
  std::size_t available() const noexcept;
  /// How many wait behind the first one, and have waited; may have changed when it is returned. Takes the lock, and walks along
  /// the line.
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

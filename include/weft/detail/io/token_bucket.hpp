// How many bytes may go at what time. Part of io_limits.hpp.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <weft/clock.hpp>
#include <weft/detail/base/config.hpp>

namespace weft::detail {

/// A token bucket (as in RFC 2697): a token is a byte; so many come a second, and no more than `burst` are kept. Full at first.
///
/// Who asks waits until there are as many as it wants, or half a bucket: so a long transfer goes in pieces of that size, and not
/// byte by byte as they come.
class token_bucket {
 public:
  token_bucket(std::uint64_t rate, std::uint64_t burst) noexcept
      : rate_{static_cast<double>(rate)}, burst_{burst}, tokens_{static_cast<double>(burst)} {
    WEFT_EXPECTS(rate != 0, "a rate limit of no byte a second was asked for: nothing would ever pass");
    WEFT_EXPECTS(burst != 0, "a rate limit with a burst of no byte was asked for: nothing would ever pass");
  }

  /// How many of so many bytes may go now: at least one; 0: none, before some time has passed.
  std::uint64_t available(std::uint64_t wanted, clock::time_point now) noexcept {
    refill(now);
    if (tokens_ < static_cast<double>(piece(wanted))) return 0;
    return tokens_ < static_cast<double>(wanted) ? static_cast<std::uint64_t>(tokens_) : wanted;
  }
  /// When some of them may, as things are now.
  clock::time_point when(std::uint64_t wanted) const noexcept {
    const double lacking = static_cast<double>(piece(wanted)) - tokens_;
    const double nanoseconds = std::min(std::ceil(lacking / rate_ * 1e9), 9e18);
    return later(filled_, clock::duration{std::max<std::int64_t>(static_cast<std::int64_t>(nanoseconds), 1)});
  }
  /// Of those that were available before, which went now: what came meanwhile came to a bucket that may have been full.
  void take(std::uint64_t bytes, clock::time_point now) noexcept {
    refill(now);
    tokens_ -= static_cast<double>(bytes);
  }

 private:
  std::uint64_t piece(std::uint64_t wanted) const noexcept { return std::min(wanted, burst_ / 2 + burst_ % 2); }
  void refill(clock::time_point now) noexcept {
    if (has_begun_ && now > filled_) {
      const double seconds = std::chrono::duration<double>(now - filled_).count();
      tokens_ = std::min(tokens_ + seconds * rate_, static_cast<double>(burst_));
    }
    if (!has_begun_ || now > filled_) filled_ = now;
    has_begun_ = true;
  }

  double rate_;
  std::uint64_t burst_;
  double tokens_;
  clock::time_point filled_{};  // the time of which tokens_ is
  bool has_begun_ = false;
};

}  // namespace weft::detail

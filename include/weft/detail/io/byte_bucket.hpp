// A token bucket of bytes, which limits the rate of reads and writes. Part of io_limits.hpp.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <weft/clock.hpp>
#include <weft/detail/base/config.hpp>

namespace weft::detail {

/// A token bucket (as in RFC 2697). A token is a byte: `rate` tokens are added in a second, up to `burst`. Full at first.
///
/// A caller waits until the bucket has as many tokens as it wants, or half of `burst`: so a long transfer goes in pieces of that
/// size, and not byte by byte.
class byte_bucket {
 public:
  byte_bucket(std::uint64_t rate, std::uint64_t burst) noexcept
      : rate_{static_cast<double>(rate)}, burst_{burst}, tokens_{static_cast<double>(burst)} {
    WEFT_EXPECTS(rate != 0, "a rate limit of no byte a second was asked for: nothing would ever pass");
    WEFT_EXPECTS(burst != 0, "a rate limit with a burst of no byte was asked for: nothing would ever pass");
  }

  /// How many of `wanted` bytes may go now; 0: the caller must wait first.
  std::uint64_t available(std::uint64_t wanted, clock::time_point now) noexcept {
    refill(now);
    if (tokens_ < static_cast<double>(piece(wanted))) return 0;
    return tokens_ < static_cast<double>(wanted) ? static_cast<std::uint64_t>(tokens_) : wanted;
  }
  /// When available() will give some of `wanted` bytes, if nobody takes tokens before.
  clock::time_point when(std::uint64_t wanted) const noexcept {
    const double lacking = static_cast<double>(piece(wanted)) - tokens_;
    const double nanoseconds = std::min(std::ceil(lacking / rate_ * 1e9), 9e18);
    return later(filled_, clock::duration{std::max<std::int64_t>(static_cast<std::int64_t>(nanoseconds), 1)});
  }
  /// Takes the tokens of bytes that went now, and that were available before. Adds the tokens of the time in between first, so
  /// that a bucket that was full all the time gains none.
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
  clock::time_point filled_{};  // when tokens_ was last computed
  bool has_begun_ = false;
};

}  // namespace weft::detail

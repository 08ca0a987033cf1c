// Durations and time points that a program gives, of any kind: hours, doubles, what is for ever. Part of clock.hpp.
//
// std::chrono converts to nanoseconds by a multiplication that may overflow: hours::max() is below zero then. So whatever
// takes a duration goes through saturated(), and an option is a time_span or a time_mark, which does.
//
// Rejected: options that are templates: they could not be written in braces.
#pragma once

#include <weft/detail/base/config.hpp>
#include <weft/detail/base/forward.hpp>

namespace weft::detail {

/// As many ticks as there are, rounded up, and no more than fit. Whatever takes a duration of any kind goes through here.
template <class Rep, class Period>
constexpr std::chrono::steady_clock::duration saturated(std::chrono::duration<Rep, Period> d) noexcept {
  using ticks_of_clock = std::chrono::steady_clock::duration;
  WEFT_EXPECTS(d == d, "a duration or a time was given that is no number (NaN)");
  using approximate = std::chrono::duration<double, ticks_of_clock::period>;
  const approximate ticks{d}, most{ticks_of_clock::max()};
  if (!(ticks < most)) return ticks_of_clock::max();
  if (!(ticks > -most)) return ticks_of_clock::min();
  return std::chrono::ceil<ticks_of_clock>(d);
}
template <class Duration>
constexpr std::chrono::steady_clock::time_point saturated(
    std::chrono::time_point<std::chrono::steady_clock, Duration> at) noexcept {
  return std::chrono::steady_clock::time_point{saturated(at.time_since_epoch())};
}

/// An option that is a duration: given as one of any kind, and cut to what the clock can tell.
class time_span : public std::chrono::steady_clock::duration {
 public:
  template <class Rep, class Period>
  constexpr time_span(std::chrono::duration<Rep, Period> d) noexcept  // NOLINT: `.delay = 5ms`
      : std::chrono::steady_clock::duration{saturated(d)} {}
};

/// An option that is a time point of the steady clock, as well.
class time_mark : public std::chrono::steady_clock::time_point {
 public:
  template <class Duration>
  constexpr time_mark(std::chrono::time_point<std::chrono::steady_clock, Duration> at) noexcept  // NOLINT: as above
      : std::chrono::steady_clock::time_point{saturated(at)} {}
};

}  // namespace weft::detail

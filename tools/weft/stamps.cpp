#include "stamps.hpp"

#include <time.h>

#include "base/stamp.hpp"
#include "fields.hpp"
#include "target.hpp"

namespace weft_tool {

using weft::detail::stamp_pair;

namespace {

std::uint64_t nanoseconds_of(clockid_t clock) noexcept {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace

stamp_pair pair_at(const memory& of, const fields& with, address at) {
  return {of.word(at + with["stamp_pair.stamp"]), of.word(at + with["stamp_pair.steady"]),
          of.word(at + with["stamp_pair.real"])};
}

stamp_pair pair_now(const memory& of, const fields& with) {
  const bool ticks = !with.has("stamps.are_ticks") || of.word<std::uint8_t>(with["stamps.are_ticks"]) != 0;
  stamp_pair pair;
  const std::uint64_t before = weft::detail::processor_ticks();
  pair.steady = nanoseconds_of(CLOCK_MONOTONIC);
  pair.stamp = ticks ? before + (weft::detail::processor_ticks() - before) / 2 : pair.steady;
  pair.real = nanoseconds_of(CLOCK_REALTIME);
  return pair;
}

bool are_of_one_run(const stamp_pair& first, const stamp_pair& last) noexcept {
  constexpr std::int64_t most_ns = 2'000'000'000;  // by which the system's time may have been set
  const auto apart = static_cast<std::int64_t>((last.real - last.steady) - (first.real - first.steady));
  return last.stamp > first.stamp && last.steady > first.steady && apart > -most_ns && apart < most_ns;
}

stamp_times::stamp_times(const memory& of, const fields& with)
    : first_{pair_at(of, with, with["stamps.first"])},
      now_{pair_now(of, with)},
      is_known_{are_of_one_run(first_, now_)} {}

std::optional<std::int64_t> stamp_times::at(std::uint64_t stamp) const noexcept {
  if (!is_known_ || stamp < first_.stamp || stamp > now_.stamp) return std::nullopt;
  const double part = static_cast<double>(stamp - first_.stamp) / static_cast<double>(now_.stamp - first_.stamp);
  return static_cast<std::int64_t>(first_.steady) +
         static_cast<std::int64_t>(part * static_cast<double>(now_.steady - first_.steady));
}

}  // namespace weft_tool

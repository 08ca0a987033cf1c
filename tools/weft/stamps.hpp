// Time stamps of a target, which are its processor's ticks mostly, and what time they are.
#pragma once

#include <cstdint>
#include <optional>

#include "memory.hpp"
#include "observe/recording_format.hpp"

namespace weft_tool {

class fields;
class target;

/// As it lies in the target.
weft::detail::stamp_pair pair_at(const memory& of, const fields& with, address at);
/// Now, as the process takes stamps.
weft::detail::stamp_pair pair_now(const memory& of, const fields& with);
/// Whether both are of the same run of the same system, whose clocks and stamps have gone on.
bool are_of_one_run(const weft::detail::stamp_pair& first, const weft::detail::stamp_pair& last) noexcept;

/// When the process took a stamp, by the system's steady clock, in nanoseconds. Made when the process stands or has just stood.
class stamp_times {
 public:
  stamp_times(const memory& of, const fields& with);

  /// Nothing where that can't be: a core file of another system, or what is no stamp.
  std::optional<std::int64_t> at(std::uint64_t stamp) const noexcept;

 private:
  weft::detail::stamp_pair first_{}, now_{};
  bool is_known_ = false;
};

}  // namespace weft_tool

// A stamp and the time: from two of them follows how long a tick of a stamp is.
#pragma once

#include <cstdint>

namespace weft::detail {

/// The same moment, told in three ways.
struct stamp_pair {
  std::uint64_t stamp = 0, steady = 0, real = 0;  // the latter two in nanoseconds
  static stamp_pair now() noexcept;
};

}  // namespace weft::detail

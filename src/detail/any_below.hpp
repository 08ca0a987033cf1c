// A number below `count`, another one each time: where to begin, so that all are served alike.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::detail {

inline std::size_t any_below(std::size_t count) noexcept {
  static constinit thread_local std::uint32_t state = 0x9e3779b9;
  state ^= state << 13;
  state ^= state >> 17;
  state ^= state << 5;
  return static_cast<std::size_t>(std::uint64_t{state} * count >> 32);
}

}  // namespace weft::detail

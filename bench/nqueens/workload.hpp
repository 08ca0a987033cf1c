// nqueens: how many ways there are to place 12 queens so that none attacks another, one row after the other; each place that
// is safe in a row is a child, on a pool of --size threads. A child gets the board by value. One item is the whole of it.
#pragma once

#include <array>
#include <cstddef>

namespace bench {

inline constexpr std::size_t queens = 12;
inline constexpr long queens_result = 14'200;

/// The column of the queen in each row so far.
using board = std::array<signed char, queens>;

inline bool is_safe(const board& placed, std::size_t row, std::size_t column) noexcept {
  for (std::size_t above = 0; above != row; ++above) {
    const auto other = static_cast<std::size_t>(placed[above]);
    if (other == column || other + row - above == column || other == column + row - above) return false;
  }
  return true;
}

inline board with_queen(board placed, std::size_t row, std::size_t column) noexcept {
  placed[row] = static_cast<signed char>(column);
  return placed;
}

}  // namespace bench

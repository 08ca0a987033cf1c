// cilksort: a merge sort whose halves and merges are both forked, of 4 M numbers, on a pool of --size threads. Below 2048
// elements std::sort and std::merge do it. The numbers are drawn anew for each call, outside the clock; what comes out
// is looked at each time. One item is a number.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace bench {

using number = std::uint32_t;

inline constexpr std::size_t sorted_numbers = std::size_t{1} << 22;
inline constexpr std::size_t sort_grain = 2048;

/// What is sorted, and room to merge into.
struct sort_input {
  std::vector<number> values, room;
};

inline sort_input unsorted() {
  sort_input all{std::vector<number>(sorted_numbers), std::vector<number>(sorted_numbers)};
  std::uint64_t state = 88172645463325252;
  for (number& each : all.values) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    each = static_cast<number>(state >> 32);
  }
  return all;
}

/// Where two sorted ranges are cut to be merged in two parts: what is before `left` and `right` goes before the rest.
struct merge_cut {
  number* left;
  number* right;
};

inline merge_cut cut(number* left, number* left_end, number* right, number* right_end) noexcept {
  if (left_end - left >= right_end - right) {
    number* const middle = left + (left_end - left) / 2;
    return {middle, std::lower_bound(right, right_end, *middle)};
  }
  number* const middle = right + (right_end - right) / 2;
  return {std::upper_bound(left, left_end, *middle), middle};
}

inline bool is_small(const number* left, const number* left_end, const number* right,
                     const number* right_end) noexcept {
  return static_cast<std::size_t>((left_end - left) + (right_end - right)) <= sort_grain;
}

}  // namespace bench

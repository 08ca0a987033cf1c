// The sort for libraries whose tasks are plain functions: `both(f, g)` runs the two, perhaps at once, and waits for them.
#pragma once

#include "workload.hpp"

namespace bench {

template <class Both>
void merge_by(const Both& both, number* left, number* left_end, number* right, number* right_end, number* into) {
  if (is_small(left, left_end, right, right_end)) {
    std::merge(left, left_end, right, right_end, into);
    return;
  }
  const merge_cut at = cut(left, left_end, right, right_end);
  both([&] { merge_by(both, left, at.left, right, at.right, into); },
       [&] { merge_by(both, at.left, left_end, at.right, right_end, into + (at.left - left) + (at.right - right)); });
}

/// Into `room` if `moves`, else in place.
template <class Both>
void sort_by(const Both& both, number* values, number* room, std::size_t count, bool moves) {
  if (count <= sort_grain) {
    std::sort(values, values + count);
    if (moves) std::copy(values, values + count, room);
    return;
  }
  const std::size_t half = count / 2;
  both([&] { sort_by(both, values, room, half, !moves); },
       [&] { sort_by(both, values + half, room + half, count - half, !moves); });
  number* const from = moves ? values : room;
  merge_by(both, from, from + half, from + half, from + count, moves ? room : values);
}

}  // namespace bench

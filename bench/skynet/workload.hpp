// skynet: a tree of ten children a node and 10 million leaves, on a pool of --size threads; a leaf gives its number, a
// node the sum. One item is the whole of it.
#pragma once

#include <cstddef>

namespace bench {

inline constexpr int skynet_depth = 7;
inline constexpr std::size_t skynet_width = 10;
inline constexpr long skynet_result = 49'999'995'000'000;

// A hundredth of the tree, for libraries of whose tasks most are alive at once: the whole of it takes gigabytes.
inline constexpr double skynet_part = 0.01;
inline constexpr int skynet_part_depth = 5;
inline constexpr long skynet_part_result = 4'999'950'000;

}  // namespace bench

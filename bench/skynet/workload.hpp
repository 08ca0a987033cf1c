// skynet: a tree of ten children a node and 10 million leaves, on a pool of --size threads; a leaf gives its number, a
// node the sum. One item is the whole of it.
#pragma once

#include <cstddef>

namespace bench {

inline constexpr int skynet_depth = 7;
inline constexpr std::size_t skynet_width = 10;
inline constexpr long skynet_result = 49'999'995'000'000;

}  // namespace bench

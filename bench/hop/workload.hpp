// hop: 100 tasks go from one pool of one thread to another and back, 100 times each. One item is there and back.
#pragma once

#include <cstddef>

namespace bench {

inline constexpr std::size_t hop_tasks = 100;
inline constexpr std::size_t hop_rounds = 100;

}  // namespace bench

// broadcast: one sends fifty thousand numbers to four that each receive all of them and add them up, none of which may be
// more than 1024 behind; on --size threads. One item is a number sent to all.
#pragma once

#include "../harness/harness.hpp"

#include <cstddef>

namespace bench {

inline constexpr std::size_t broadcast_numbers = 50'000;
inline constexpr std::size_t broadcast_receivers = 4;
inline constexpr std::size_t broadcast_room = 1024;
inline constexpr std::size_t broadcast_sum = broadcast_receivers * (broadcast_numbers * (broadcast_numbers - 1) / 2);

}  // namespace bench

// channel_spsc: one sends a hundred thousand numbers through a channel with room for 1024, another one receives them and adds
// them up; on --size threads. One item is a number.
#pragma once

#include "../harness/harness.hpp"

#include <cstddef>

namespace bench {

inline constexpr std::size_t spsc_numbers = 100'000;
inline constexpr std::size_t spsc_room = 1024;
inline constexpr std::size_t spsc_sum = spsc_numbers * (spsc_numbers - 1) / 2;

}  // namespace bench

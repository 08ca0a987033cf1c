// channel_mpmc: four send --size numbers through one channel with room for 1024, four others receive them and add them up; on
// two threads. One item is a number.
#pragma once

#include "../harness/harness.hpp"

#include <cstddef>

namespace bench {

inline constexpr std::size_t mpmc_senders = 4, mpmc_receivers = 4;
inline constexpr std::size_t mpmc_threads = 2;
inline constexpr std::size_t mpmc_room = 1024;

constexpr std::size_t sum_of_numbers(std::size_t count) { return count * (count - 1) / 2; }

}  // namespace bench

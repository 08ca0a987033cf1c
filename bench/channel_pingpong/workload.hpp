// channel_pingpong: two hand a number back and forth through two channels without room, and one of them adds one each
// time; on as many threads as --size says. One item is a round trip.
#pragma once

#include "../harness/harness.hpp"

#include <cstddef>

namespace bench { inline constexpr std::size_t pingpong_rounds = 10'000; }  // namespace bench

// timeout: two hand a number back and forth through two channels without room, on one thread, and one of them receives with a
// time limit of so many seconds as --size says; 0: without one. The difference of the two is what a limit costs. One item is a
// round trip.
#pragma once

#include "../harness/harness.hpp"

#include <chrono>
#include <cstddef>

namespace bench { inline constexpr std::size_t timeout_rounds = 10'000; }  // namespace bench

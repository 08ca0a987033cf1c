// select: what it costs to wait for whichever of several channels is ready. --size says which way; one item is
//   2   a round trip between two that hand a number back and forth, each in a select of two receives, one of which is never
//       ready
//   4   putting a value into one of four channels, a different one each time, and a select of four receives
//   0   a select of two receives and `otherwise`, with nothing there
#pragma once

#include "../harness/harness.hpp"

#include <cstddef>

namespace bench { inline constexpr std::size_t select_rounds = 10'000; }  // namespace bench

// sleepers: so many tasks are made, on one thread, each of which sleeps for an hour; when all of them sleep, they are stopped
// and joined. What they take is the program's peak memory. One item is a task.
#pragma once

#include "../harness/harness.hpp"

#include <chrono>
#include <cstddef>

namespace bench { inline constexpr std::chrono::hours asleep{1}; }  // namespace bench

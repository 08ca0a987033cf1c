// when_any: two are started, of which the first waits for ever and the second has its value at once; the first is stopped
// and joined, so that nothing runs on.
#pragma once

#include "../harness/harness.hpp"

#include <cstddef>

namespace bench { inline constexpr std::size_t races = 1000; }  // namespace bench

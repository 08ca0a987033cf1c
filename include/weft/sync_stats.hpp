// What a primitive or a channel tells about those that wait in it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft {

/// What a primitive can tell about its waiters.
struct sync_stats {
  std::size_t waiting;  ///< now in line
  std::uint64_t waits;  ///< so far, that had to get in line
};

}  // namespace weft

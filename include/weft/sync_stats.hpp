// Counts of the waits in a primitive or a channel.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft {

/// Counts of the waits in a primitive or a channel.
struct sync_stats {
  std::size_t waiting;  ///< how many wait now
  std::uint64_t waits;  ///< how many have had to wait so far
};

}  // namespace weft

// The cause of a stop that has none of its own.
#pragma once

#include <weft/stop.hpp>

namespace weft::detail {

/// Of a stop that no line of the program has asked for: a join, a time-out and an executor that ends only tell their tasks, which
/// costs them nothing more.
inline stop_cause stopped_by_nobody() noexcept {
  return {
      .reason =
          "what awaits the task needs it no more (another one was first, one beside it has failed, its time was over), "
          "or its executor ends",
      .where = {}};
}

}  // namespace weft::detail

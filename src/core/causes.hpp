// The causes of stops that keep none of their own.
#pragma once

#include <weft/detail/core/root.hpp>
#include <weft/stop.hpp>

namespace weft::detail {

/// Of a child that its group has told, since that has decided (join/group.cpp).
stop_cause cause_by_group(const root& told) noexcept;

/// Of a task that its executor has told. No line of the program has asked for just that.
inline stop_cause cause_by_executor() noexcept {
  return {.reason = "its executor ends, or its pool was shut down by cancel", .where = {}};
}

/// Of a stop whose cause nobody has noted.
inline stop_cause stopped_by_nobody() noexcept {
  return {.reason = "told to stop without a cause, as a shared_task is that nobody awaits any more", .where = {}};
}

}  // namespace weft::detail

// In the place of src/core/turn_switch.hpp: nothing that a model runs is traced.
#pragma once

#include <cstdlib>
#include <weft/detail/core/root.hpp>

#include "core/worker.hpp"

namespace weft::detail {

class request_trace;

// Of traced roots only.
inline void begin_queued_turn(worker&, root&, request_trace&) noexcept { std::abort(); }

// Of others, too.
inline void may_suspend(worker&, root&) noexcept {}
inline void end_queued_turn(worker&) noexcept {}

}  // namespace weft::detail

// In the place of src/core/walk_gate.hpp, for models of what no walk looks at: nobody closes the gate.
#pragma once

#include <weft/detail/core/waiter.hpp>

#include "core/worker.hpp"

namespace weft::detail {

struct walk_gate {
  static void enter(worker&, waiter&) noexcept {}
  static void leave(worker&, waiter&) noexcept {}
  static void pass() noexcept {}
};

}  // namespace weft::detail

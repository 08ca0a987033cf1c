// What fibers keep in each worker.
#pragma once

#include "base/count.hpp"

namespace weft::detail {

struct fiber_slot {
  count created, ended;
  count switches;           // from the run loop to a fiber
  count across;             // from a fiber to another one
  count migrations;         // to a fiber that was on another worker before
  int* errno_at = nullptr;  // the thread's
};

}  // namespace weft::detail

// What fibers keep in each worker.
#pragma once

#include "base/count.hpp"

namespace weft::detail {

struct fiber_slot {
  count created, ended;
  count switches;           // to one, from the run loop
  count across;             // to one, from another one
  count migrations;         // to one that was on another worker before
  int* errno_at = nullptr;  // the thread's
};

}  // namespace weft::detail

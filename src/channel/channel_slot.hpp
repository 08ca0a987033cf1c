// What channels keep in each worker: how far apart those lie whom it serves.
#pragma once

#include <cstdint>
#include <utility>

namespace weft::detail {

/// How far apart things lie that are come to one after the other.
struct stride {
  std::uintptr_t last = 0, step = 0;
  bool was_off = false;

  /// Whether `at` is a step from the last one. One that is not, as where colours of stacks begin again, changes nothing;
  /// the second in a row begins another stride.
  bool goes_on_at(std::uintptr_t at) noexcept {
    const std::uintptr_t now = at - std::exchange(last, at);
    if (now == step) {
      was_off = false;
      return true;
    }
    if (std::exchange(was_off, true)) step = now;
    return false;
  }
};

struct channel_slot {
  stride served;  // the fibers that were woken here, by their places in line
};

}  // namespace weft::detail

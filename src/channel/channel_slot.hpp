// What channels keep in each worker: the stride of the waiters that it serves.
#pragma once

#include <cstdint>
#include <utility>

namespace weft::detail {

/// Detects a constant stride in a sequence of addresses.
struct stride {
  std::uintptr_t last = 0, step = 0;
  bool was_off = false;

  /// Whether `at` is one stride from the last address. One address that is not, as where the colours of stacks begin again,
  /// changes nothing; a second one in a row begins another stride.
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
  stride served;  // of the waiters of fibers that were woken here
};

}  // namespace weft::detail

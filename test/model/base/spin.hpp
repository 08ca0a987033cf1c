// In the place of src/base/spin.hpp: whoever spins lets the model run another thread.
#pragma once

#include "relacy.hpp"

namespace weft::detail {

class spin_wait {
 public:
  void once() noexcept { rl::yield(1, RL_INFO); }
  static void pause() noexcept { rl::yield(1, RL_INFO); }
  static void back_off(unsigned) noexcept { rl::yield(1, RL_INFO); }
};

}  // namespace weft::detail

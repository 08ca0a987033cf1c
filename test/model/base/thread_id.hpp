// In the place of src/base/thread_id.hpp: the model's threads share one of the system's.
#pragma once

#include <cstdint>

#include "relacy.hpp"

namespace weft::detail {

inline std::uintptr_t this_thread_id() noexcept { return 1 + rl::thread_index(); }

}  // namespace weft::detail

// In the place of src/detail/fence.hpp: two ordinary fences, which order what its pair orders.
#pragma once

#include "relacy.hpp"

namespace weft::detail {

inline void prepare_fences() noexcept {}
inline bool light_fences_are_free() noexcept { return true; }
inline void light_fence() noexcept { rl::atomic_thread_fence(rl::mo_seq_cst, RL_INFO); }
inline void free_fence() noexcept { light_fence(); }
inline void heavy_fence() noexcept { rl::atomic_thread_fence(rl::mo_seq_cst, RL_INFO); }

}  // namespace weft::detail

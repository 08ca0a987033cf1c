// In the place of src/base/fence.hpp: two ordinary fences, which order what its pair orders.
#pragma once

#include "relacy.hpp"

namespace weft::detail {

inline void prepare_fences() noexcept {}
inline bool fences_are_free = true;  // what a protocol is told
inline bool light_fences_are_free() noexcept { return fences_are_free; }
inline void light_fence() noexcept { rl::atomic_thread_fence(rl::mo_seq_cst, RL_INFO); }
inline void free_fence() noexcept {
  if (fences_are_free) light_fence();
}
inline void heavy_fence() noexcept { rl::atomic_thread_fence(rl::mo_seq_cst, RL_INFO); }

}  // namespace weft::detail

// In the place of src/base/fence.hpp: ordinary fences, which order what its pairs order.
#pragma once

#include "relacy.hpp"

namespace weft::detail {

inline void prepare_fences() noexcept {}
inline bool fences_are_free = true;  // what a protocol is told
inline bool light_fences_are_free() noexcept { return fences_are_free; }
inline bool light_fences_order = true;  // false: the other side's are no heavy ones, so a light one is as good as none
inline void light_fence() noexcept {
  if (light_fences_order) rl::atomic_thread_fence(rl::mo_seq_cst, RL_INFO);
}
inline void free_fence() noexcept {
  if (fences_are_free) light_fence();
}
inline void heavy_fence() noexcept { rl::atomic_thread_fence(rl::mo_seq_cst, RL_INFO); }
inline void full_fence() noexcept { rl::atomic_thread_fence(rl::mo_seq_cst, RL_INFO); }

}  // namespace weft::detail

// No model: as in fence.hpp.
#include "detail/fence.hpp"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace weft::detail {

constinit std::atomic<bool> fences_are_asymmetric{false};

void prepare_fences() noexcept {
  static const bool granted = ::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0 &&
                              ::syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
  if (granted) fences_are_asymmetric.store(true, std::memory_order_relaxed);  // as declared
}

void heavy_fence() noexcept {
  if (light_fences_are_free())
    ::syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
  else
    std::atomic_thread_fence(std::memory_order_seq_cst);
}

}  // namespace weft::detail

// No model: as in fence.hpp.
#include "base/fence.hpp"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace weft::detail {

constinit std::atomic<bool> fences_are_asymmetric{false};

// Not in the initializer of a local static: the kernel may take milliseconds, and the child of a fork() meanwhile would
// find the guard of that static taken for ever. To ask the kernel twice does no harm.
void prepare_fences() noexcept {
  static constinit std::atomic<bool> asked{false};
  if (asked.load(std::memory_order_acquire)) return;  // <- asked
  if (::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0 &&
      ::syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0)
    fences_are_asymmetric.store(true, std::memory_order_relaxed);  // as declared
  //   edge asked  the answer  ->  threads that need not ask again
  asked.store(true, std::memory_order_release);  // -> asked
}

void heavy_fence() noexcept {
  if (light_fences_are_free())
    ::syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
  else
    std::atomic_thread_fence(std::memory_order_seq_cst);
}

}  // namespace weft::detail

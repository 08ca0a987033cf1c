// A ring of io_uring's, as the kernel has it. What it is used for is in uring.hpp.
#pragma once

#include <liburing.h>

#include <cstdint>

#include "sched/parker.hpp"

namespace weft::detail {

/// How many submissions and completions a ring has room for. Neither limits what can be armed: the first are handed to the
/// kernel when they are full, and it keeps completions that find no room.
struct ring_size {
  unsigned submissions = 128, completions = 1024;
};

/// A ring as the kernel has it, which begins when its worker is there.
class kernel_ring {
 public:
  /// A negative error number: refused.
  int make(ring_size size) noexcept;
  kernel_ring() = default;
  kernel_ring(const kernel_ring&) = delete;
  ~kernel_ring() {
    if (is_made_) ::io_uring_queue_exit(&ring_);
  }
  /// By its owner from now on.
  int begin() noexcept;

  /// Null: the kernel takes none just now.
  io_uring_sqe* submission() noexcept;
  bool has_submissions() const noexcept { return ::io_uring_sq_ready(&ring_) != 0; }
  bool has_completions() const noexcept { return ::io_uring_cq_ready(&ring_) != 0; }
  /// Whether the kernel has work that is done when the owner enters. Any thread.
  bool has_work() const noexcept {
    return (io_uring_smp_load_acquire(ring_.sq.kflags) & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW)) != 0;
  }
  /// Whether there are completions for which the queue had no room.
  bool has_overflown() const noexcept { return (IO_URING_READ_ONCE(*ring_.sq.kflags) & IORING_SQ_CQ_OVERFLOW) != 0; }
  /// How many completions the kernel has dropped so far, having had no memory for them. By its owner.
  unsigned lost() const noexcept { return IO_URING_READ_ONCE(*ring_.cq.koverflow); }
  /// By its owner, at once: false if the kernel has nothing of that name. Otherwise its last completion comes.
  bool cancel_now(std::uint64_t name) noexcept;
  void enter() noexcept { ::io_uring_submit_and_get_events(&ring_); }
  void wait(parker::time_point until) noexcept;
  unsigned take(io_uring_cqe* into, unsigned most) noexcept;

 private:
  io_uring ring_{};
  bool is_made_ = false;
};

}  // namespace weft::detail

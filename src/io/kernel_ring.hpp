// A thin wrapper of an io_uring. What the ring is used for is in uring.hpp.
#pragma once

#include <liburing.h>

#include <cstdint>

#include "sched/parker.hpp"

namespace weft::detail {

/// How many submissions and completions a ring has room for. Neither limits what can be armed: a full submission queue is handed
/// to the kernel, and the kernel keeps completions that find no room.
struct ring_size {
  unsigned submissions = 128, completions = 1024;
};

/// A ring that is made disabled, by any thread, and enabled by its worker's thread, the owner.
class kernel_ring {
 public:
  /// Returns a negative error number if the system refuses it, else 0.
  int make(ring_size size) noexcept;
  kernel_ring() = default;
  kernel_ring(const kernel_ring&) = delete;
  ~kernel_ring() {
    if (is_made_) ::io_uring_queue_exit(&ring_);
  }
  /// Enables it: from now on only the calling thread, its owner, may submit. Returns a negative error number, or 0.
  int begin() noexcept;

  /// A submission queue entry to fill in; null: the queue is full, and the kernel takes none now.
  io_uring_sqe* submission() noexcept;
  bool has_submissions() const noexcept { return ::io_uring_sq_ready(&ring_) != 0; }
  bool has_completions() const noexcept { return ::io_uring_cq_ready(&ring_) != 0; }
  /// Whether the kernel has task work or overflown completions for the owner, who gets them by enter(). Any thread.
  bool has_work() const noexcept {
    return (io_uring_smp_load_acquire(ring_.sq.kflags) & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW)) != 0;
  }
  /// Whether there are completions for which the queue had no room.
  bool has_overflown() const noexcept { return (IO_URING_READ_ONCE(*ring_.sq.kflags) & IORING_SQ_CQ_OVERFLOW) != 0; }
  /// How many completions the kernel has dropped so far, since it had no memory for them. By the owner.
  unsigned lost() const noexcept { return IO_URING_READ_ONCE(*ring_.cq.koverflow); }
  /// By the owner: cancels the request with that user data, by a synchronous call. False: the kernel has no such request. True:
  /// the last completion of the request comes.
  bool cancel_now(std::uint64_t name) noexcept;
  void enter() noexcept { ::io_uring_submit_and_get_events(&ring_); }
  void wait(parker::time_point until) noexcept;
  unsigned take(io_uring_cqe* into, unsigned most) noexcept;

 private:
  io_uring ring_{};
  bool is_made_ = false;
};

}  // namespace weft::detail

#include "io/kernel_ring.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>

namespace weft::detail {
namespace {

constexpr unsigned needed_features =
    IORING_FEAT_NODROP | IORING_FEAT_EXT_ARG | IORING_FEAT_CQE_SKIP | IORING_FEAT_SUBMIT_STABLE;

}  // namespace

int kernel_ring::make(ring_size size) noexcept {
  io_uring_params how{};
  how.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_TASKRUN_FLAG |
              IORING_SETUP_R_DISABLED | IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP;
  how.cq_entries = size.completions;
  if (const int refused = ::io_uring_queue_init_params(size.submissions, &ring_, &how); refused < 0) return refused;
  is_made_ = true;
  if ((how.features & needed_features) != needed_features) return -ENOSYS;
  return ::fcntl(ring_.ring_fd, F_SETFD, FD_CLOEXEC) == 0 ? 0 : -errno;
}

// Not by io_uring_enable_rings(): liburing 2.3 declares that function, but does not export it.
int kernel_ring::begin() noexcept {
  return ::syscall(SYS_io_uring_register, ring_.ring_fd, IORING_REGISTER_ENABLE_RINGS, nullptr, 0) == 0 ? 0 : -errno;
}

bool kernel_ring::cancel_now(std::uint64_t name) noexcept {
  constexpr unsigned sync_cancel = 24;  // IORING_REGISTER_SYNC_CANCEL
  io_uring_sync_cancel_reg what{};      // timeout 0: it does not wait for a call that is being executed
  what.addr = name;
  what.fd = -1;
  return ::syscall(SYS_io_uring_register, ring_.ring_fd, sync_cancel, &what, 1) == 0 || errno != ENOENT;
}

io_uring_sqe* kernel_ring::submission() noexcept {
  if (io_uring_sqe* const free = ::io_uring_get_sqe(&ring_); free != nullptr) return free;
  ::io_uring_submit(&ring_);
  return ::io_uring_get_sqe(&ring_);
}

void kernel_ring::wait(parker::time_point until) noexcept {
  if (until == until.max()) {
    ::io_uring_submit_and_wait(&ring_, 1);  // EINTR counts as a wake-up
    return;
  }
  const auto left = std::chrono::ceil<std::chrono::nanoseconds>(until - std::chrono::steady_clock::now());
  const std::int64_t nanoseconds = std::max<std::int64_t>(left.count(), 0);
  __kernel_timespec most{.tv_sec = nanoseconds / 1'000'000'000, .tv_nsec = nanoseconds % 1'000'000'000};
  io_uring_cqe* first = nullptr;
  ::io_uring_submit_and_wait_timeout(&ring_, &first, 1, &most, nullptr);
}

unsigned kernel_ring::take(io_uring_cqe* into, unsigned most) noexcept {
  unsigned head = 0, count = 0;
  io_uring_cqe* one;
  io_uring_for_each_cqe(&ring_, head, one) {
    if (count == most) break;
    into[count++] = *one;
  }
  ::io_uring_cq_advance(&ring_, count);
  return count;
}

}  // namespace weft::detail

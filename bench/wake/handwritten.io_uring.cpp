// The same in a ring: a multishot poll of an eventfd, edge-triggered, so that nobody reads it.
#include "workload.hpp"

#include <liburing.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

void bench::run(bench::state& state) {
  const int bell = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  std::atomic<std::atomic<bool>*> job{nullptr};
  std::atomic<bool> over{false}, is_armed{false}, is_refused{false};
  std::thread worker{[&] {
    io_uring ring{};
    is_refused = io_uring_queue_init(8, &ring, IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN) != 0;
    const auto arm = [&] {
      io_uring_sqe* const next = io_uring_get_sqe(&ring);
      io_uring_prep_poll_multishot(next, bell, static_cast<unsigned>(POLLIN) | 1U << 31);  // EPOLLET
    };
    if (!is_refused) {
      arm();
      io_uring_submit(&ring);
    }
    is_armed = true;
    is_armed.notify_all();
    while (!is_refused && !over.load(std::memory_order_acquire)) {
      io_uring_submit_and_wait(&ring, 1);
      unsigned head, seen = 0;
      io_uring_cqe* each;
      io_uring_for_each_cqe(&ring, head, each) {
        ++seen;
        if ((each->flags & IORING_CQE_F_MORE) == 0) arm();
      }
      io_uring_cq_advance(&ring, seen);
      if (auto* flag = job.exchange(nullptr, std::memory_order_acquire)) flag->store(true, std::memory_order_release);
    }
    if (!is_refused) io_uring_queue_exit(&ring);
  }};
  is_armed.wait(false);
  state.verify(!is_refused, "a ring is refused");
  const auto ring_bell = [&] {
    const std::uint64_t one = 1;
    return ::write(bell, &one, sizeof one) == sizeof one;
  };
  if (!is_refused)
    wake_ups(state, [&](std::atomic<bool>& ran) {
      job.store(&ran, std::memory_order_release);
      state.verify(ring_bell(), "the eventfd can't be written");
    });
  over.store(true, std::memory_order_release);
  state.verify(ring_bell(), "the eventfd can't be written");
  worker.join();
  ::close(bell);
}

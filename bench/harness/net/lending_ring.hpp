// A ring of io_uring that lends its receives buffers, and what goes to the system goes there together with the next wait.
#pragma once

#include <liburing.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace bench {

/// Used on the thread that sets it up.
class lending_ring {
 public:
  /// Without a system call.
  lending_ring(unsigned buffers, unsigned buffer_bytes)
      : buffers_{buffers}, buffer_bytes_{buffer_bytes}, memory_(std::size_t{buffers} * buffer_bytes) {}
  lending_ring(const lending_ring&) = delete;

  /// With `entries` for what was not submitted yet, and all buffers lent.
  void set_up(unsigned entries) {
    io_uring_params options{};
    options.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_CQSIZE;
    options.cq_entries = 4 * buffers_;  // a receive and a send each, and room
    check(io_uring_queue_init_params(entries, &ring_, &options), "io_uring_setup");
    void* list = nullptr;
    if (::posix_memalign(&list, 4096, buffers_ * sizeof(io_uring_buf)) != 0) std::abort();
    list_ = static_cast<io_uring_buf_ring*>(list);
    io_uring_buf_reg where{};
    where.ring_addr = reinterpret_cast<std::uintptr_t>(list);
    where.ring_entries = buffers_;
    where.bgid = group;
    check(io_uring_register_buf_ring(&ring_, &where, 0), "io_uring_register_buf_ring");
    io_uring_buf_ring_init(list_);
    for (unsigned i = 0; i != buffers_; ++i) lend(i);
  }

  int descriptor() const noexcept { return ring_.ring_fd; }

  char* at(unsigned buffer) noexcept { return memory_.data() + std::size_t{buffer} * buffer_bytes_; }

  void lend(unsigned buffer) {
    io_uring_buf_ring_add(list_, at(buffer), buffer_bytes_, static_cast<std::uint16_t>(buffer),
                          io_uring_buf_ring_mask(buffers_), 0);
    io_uring_buf_ring_advance(list_, 1);
  }

  /// An entry for the next operation; submits where there is none left.
  io_uring_sqe* take() {
    io_uring_sqe* next = io_uring_get_sqe(&ring_);
    if (next != nullptr) return next;
    check(io_uring_submit(&ring_), "io_uring_submit");
    return io_uring_get_sqe(&ring_);
  }

  /// Has a receive, which `receive` is, take a lent buffer.
  static void borrow(io_uring_sqe* receive) {
    receive->flags |= IOSQE_BUFFER_SELECT;
    receive->buf_group = group;
  }

  /// Hands `handle` each completion, for good.
  template <class Handle>
  [[noreturn]] void run(Handle handle) {
    for (;;) {
      check(io_uring_submit_and_wait(&ring_, 1), "io_uring_enter");
      unsigned head, seen = 0;
      io_uring_cqe* each;
      io_uring_for_each_cqe(&ring_, head, each) {
        handle(*each);
        ++seen;
      }
      io_uring_cq_advance(&ring_, seen);
    }
  }

  static void check(int result, const char* what) {
    if (result >= 0) return;
    std::fprintf(stderr, "%s: error %d\n", what, -result);
    std::exit(1);
  }

 private:
  static constexpr std::uint16_t group = 0;

  io_uring ring_{};
  io_uring_buf_ring* list_ = nullptr;
  unsigned buffers_, buffer_bytes_;
  std::vector<char> memory_;
};

}  // namespace bench

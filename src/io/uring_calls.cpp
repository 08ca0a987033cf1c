// System calls on files that a ring makes for its owner's tasks.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "io/uring.hpp"

namespace weft::detail {
namespace {

void describe(const file_request& what, io_uring_sqe* to) noexcept {
  using kind = file_request::kind;
  const auto* const parts = static_cast<const iovec*>(what.memory);
  const bool is_one = what.count == 1;
  switch (what.what) {
    case kind::read:
      if (is_one)
        ::io_uring_prep_read(to, what.number, parts->iov_base, static_cast<unsigned>(parts->iov_len), what.offset);
      else
        ::io_uring_prep_readv(to, what.number, parts, what.count, what.offset);
      break;
    case kind::write:
    case kind::append: {
      const std::uint64_t at = what.what == kind::append ? 0 : what.offset;
      if (is_one)
        ::io_uring_prep_write(to, what.number, parts->iov_base, static_cast<unsigned>(parts->iov_len), at);
      else
        ::io_uring_prep_writev(to, what.number, parts, what.count, at);
      if (what.what != kind::append) break;
      to->rw_flags = RWF_APPEND;
      to->flags |= IOSQE_ASYNC;  // in one piece: at submission the kernel might write only the part that needs no wait
      break;
    }
    case kind::sync: ::io_uring_prep_fsync(to, what.number, 0); break;
    case kind::sync_data: ::io_uring_prep_fsync(to, what.number, IORING_FSYNC_DATASYNC); break;
    case kind::allocate:
      ::io_uring_prep_fallocate(to, what.number, 0, static_cast<off_t>(what.offset), static_cast<off_t>(what.size));
      break;
    case kind::open:
      // At submission the kernel would open the file with O_NONBLOCK: for a FIFO it would not wait for the other end, but fail,
      // or succeed without it.
      ::io_uring_prep_openat(to, AT_FDCWD, what.path, what.flags, what.permissions);
      to->flags |= IOSQE_ASYNC;
      break;
    case kind::close: ::io_uring_prep_close(to, what.number); break;
    case kind::stat:
      ::io_uring_prep_statx(to, what.number, "", AT_EMPTY_PATH, STATX_BASIC_STATS,
                            static_cast<struct statx*>(what.memory));
      break;
    case kind::truncate:
    case kind::lock: break;  // is_for_ring() says no
  }
}

}  // namespace

call_ring* uring::ring_here() noexcept {
  const unsigned which = worker_here();
  return which < workers_.size() ? workers_[which].get() : nullptr;
}

bool uring_worker::begin(ring_call& one, root& self) noexcept {
  begin_here();
  io_uring_sqe* const to = ring_.submission();
  if (to == nullptr) return false;
  // From here on a stop may request a cancellation. The request goes to this thread, which submits it after this function.
  if (!self.park(one)) {
    ::io_uring_prep_nop(to);
    ::io_uring_sqe_set_data64(to, of_nobody);
    to->flags |= IOSQE_CQE_SKIP_SUCCESS;
    end_stopped(self);
    return true;
  }
  describe(one.request, to);
  ::io_uring_sqe_set_data64(to, reinterpret_cast<std::uintptr_t>(&one) | of_call);
  ++in_kernel_;
  if ((one.below = under_way_) != nullptr) one.below->above = &one;
  under_way_ = &one;
  has_calls_ = true;
  has_found_none_ = false;
  note_unfinished();
  of_->has_left();
  return true;
}

void uring_worker::cancel(ring_call& one) noexcept {
  if (is_here() && cancel_here(one)) return;
  if (!one.is_asked_for()) return;  // the completion has come
  calls_.put(one);
  if (!is_here()) wake();
}

// False: the kernel takes no submission now.
bool uring_worker::cancel_here(ring_call& one) noexcept {
  io_uring_sqe* const to = ring_.submission();
  if (to == nullptr) return false;
  one.is_cancelled = true;
  // A later call at the same address can't be hit: its submission comes after this cancellation in the ring.
  ::io_uring_prep_cancel64(to, reinterpret_cast<std::uintptr_t>(&one) | of_call, 0);
  ::io_uring_sqe_set_data64(to, of_nobody);
  to->flags |= IOSQE_CQE_SKIP_SUCCESS;
  has_calls_ = true;
  note_unfinished();
  return true;
}

void uring_worker::perform_calls() noexcept {
  begin_here();
  for (waiter* next = calls_.take(); next != nullptr;) {
    auto& one = static_cast<ring_call&>(*next);
    next = next->next;
    if (one.has_ended()) {
      one.end();  // the call may be gone after this line
      has_ended_some_ = true;
    } else if (!cancel_here(one) && one.is_asked_for()) {
      calls_.put(one);  // no room for a submission: the next perform_asked() tries again
    }
  }
}

void uring_worker::ended(ring_call& one, int result) noexcept {
  --in_kernel_;
  (one.above != nullptr ? one.above->below : under_way_) = one.below;
  if (one.below != nullptr) one.below->above = one.above;
  one.result = result;
  if (one.may_end()) one.end();  // the call may be gone after this line
}

}  // namespace weft::detail

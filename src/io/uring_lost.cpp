// Recovery from completions that the kernel has dropped.
//
// The kernel does not say which requests they belonged to. But each was the last completion of a poll or of a call: so the
// requests concerned are those that the owner counts as under way and that the kernel no longer has. The owner finds them by a
// synchronous cancellation of each request (IORING_REGISTER_SYNC_CANCEL), which fails for those. It cancels the others: the
// last completion of a cancelled poll makes the waiting tasks try, and arm it anew; a cancelled call that had not begun is made
// by a thread that may block.
//
// The kernel posts completions only when the ring's owner enters. So once no submission is pending and the owner has taken all
// completions, a request that the kernel does not have has lost its last one.
//
// Rejected: (a) to arm all polls anew without asking: a poll that the kernel still has would then exist twice. (b) A new ring:
// it needs the memory that is lacking.
#include <array>
#include <cerrno>

#include "io/uring.hpp"

namespace weft::detail {

// Hands over all submissions and takes all completions. False: some are left after many rounds.
bool uring_worker::reap_all() noexcept {
  constexpr int most = 1000;
  for (int i = 0; i != most; ++i) {
    ring_.enter();
    while (ring_.has_completions()) reap();  // this may resume a task that arms something
    if (!ring_.has_submissions() && !ring_.has_overflown()) return true;
  }
  return false;
}

// Cancels the polls of some descriptors, from index `from` on, and completes those that the kernel no longer has. False: these
// were the last.
bool uring_worker::probe_polls(std::size_t& from) noexcept {
  std::array<std::uint64_t, 128> over;
  std::size_t asked = 0, count = 0;
  const bool more = of_->for_each(from, [&](descriptor& one) {
    if (one.ring.home.load(std::memory_order_relaxed) != this) return true;  // as declared
    for (const direction which : {direction::in, direction::out}) {
      if ((one.ring.armed & bit(which)) == 0) continue;
      ++asked;
      if (!ring_.cancel_now(packed(one, which))) over[count++] = packed(one, which);
    }
    return asked + 2 <= over.size();
  });
  for (std::size_t i = 0; i != count; ++i) {
    io_uring_cqe last{};
    last.user_data = over[i];
    last.res = -ECANCELED;
    completed(last);
  }
  return more;
}

// A poll ends only when its owner enters the ring. A call may end before that, on a thread of the kernel's: then the kernel no
// longer has it, and its completion has not come yet. So this cancels all calls, then takes the completions; a call that was
// missing and is still under way has lost its completion. False: reap_all() could not take all completions.
bool uring_worker::probe_calls() noexcept {
  using kind = file_request::kind;
  for (ring_call* one = under_way_; one != nullptr; one = one->below)
    one->is_missing = !ring_.cancel_now(reinterpret_cast<std::uintptr_t>(one) | of_call);
  if (!reap_all()) return false;
  for (ring_call* next = under_way_; next != nullptr;) {
    ring_call& one = *next;
    next = one.below;
    if (!one.is_missing) continue;
    // Its result is not known. A close has closed the number in any case. For calls that only read, -EAGAIN has a thread make
    // them again. The others fail.
    const kind what = one.request.what;
    ended(one, what == kind::close ? 0 : what == kind::read || what == kind::stat ? -EAGAIN : -EIO);
  }
  return true;
}

void uring_worker::find_lost() noexcept {
  do {
    const unsigned now = ring_.lost();
    if (!reap_all() || !probe_calls()) return;  // the next poll() calls this again
    if (polls_wake_fd_ && !ring_.cancel_now(of_wake_fd)) polls_wake_fd_ = false;
    std::size_t from = 0;
    do
      if (!reap_all()) return;
    while (probe_polls(from));
    lost_ = now;
  } while (has_lost_some());
}

}  // namespace weft::detail

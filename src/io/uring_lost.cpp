// Completions that the kernel has dropped.
//
// Nothing says which they were. But each was the last one of a poll or of a call: so what was lost is what this side thinks is
// under way, and the kernel does not have. It is asked by a cancellation of each, which answers at once. What it still has is
// cancelled with that: the last completion of a poll has its waiters try, and then arm it anew; a call that had not begun is
// done by a thread.
//
// A completion comes as the ring's owner enters, and only then. So what the kernel does not have, while nothing is to be handed
// to it and its owner has taken all that came since, has lost its last one.
//
// Rejected: (a) to have polls armed anew without a question: one that is there still would then be there twice. (b) A new ring:
// its memory is what lacks just now.
#include <array>
#include <cerrno>

#include "io/uring.hpp"

namespace weft::detail {

// False: the kernel takes no submission just now.
bool uring_worker::reap_all() noexcept {
  constexpr int most = 1000;
  for (int i = 0; i != most; ++i) {
    ring_.enter();
    while (ring_.has_completions()) reap();  // what this has go on may arm something
    if (!ring_.has_submissions() && !ring_.has_overflown()) return true;
  }
  return false;
}

// Some descriptors from that number on. False: those were all.
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

// A poll ends as its owner enters, too; a call may have been ended before that, by a thread of the kernel's: it is not there any
// more, and its completion has not come. So all are asked for, then what has come is taken, and what is missing still has lost
// its completion. False: as above.
bool uring_worker::probe_calls() noexcept {
  using kind = file_request::kind;
  for (ring_call* one = under_way_; one != nullptr; one = one->below)
    one->is_missing = !ring_.cancel_now(reinterpret_cast<std::uintptr_t>(one) | of_call);
  if (!reap_all()) return false;
  for (ring_call* next = under_way_; next != nullptr;) {
    ring_call& one = *next;
    next = one.below;
    if (!one.is_missing) continue;
    // Whether it has failed is not known. A close has closed in any case; what only asks is asked once more, by a thread.
    const kind what = one.request.what;
    ended(one, what == kind::close ? 0 : what == kind::read || what == kind::stat ? -EAGAIN : -EIO);
  }
  return true;
}

void uring_worker::find_lost() noexcept {
  do {
    const unsigned now = ring_.lost();
    if (!reap_all() || !probe_calls()) return;  // at the next look
    if (polls_wake_fd_ && !ring_.cancel_now(of_wake_fd)) polls_wake_fd_ = false;
    std::size_t from = 0;
    do
      if (!reap_all()) return;
    while (probe_polls(from));
    lost_ = now;
  } while (has_lost_some());
}

}  // namespace weft::detail

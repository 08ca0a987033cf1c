#include "support/ring_calls.hpp"

#include <liburing.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/utsname.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdarg>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): the linker's names
extern "C" {
int __real_io_uring_submit(io_uring* ring);
int __real_io_uring_submit_and_get_events(io_uring* ring);
int __real_io_uring_submit_and_wait(io_uring* ring, unsigned least);
int __real_io_uring_submit_and_wait_timeout(io_uring* ring, io_uring_cqe** first, unsigned least,
                                            __kernel_timespec* most, sigset_t* signals);
int __real_io_uring_queue_init_params(unsigned submissions, io_uring* ring, io_uring_params* how);
void __real_io_uring_queue_exit(io_uring* ring);
int __real_uname(utsname* into);
int __real_poll(pollfd* those, nfds_t count, int milliseconds);
long __real_syscall(long number, ...);
}

namespace test {
namespace {

// One thread writes it; a ring that is entered meanwhile has the old or the new of each.
struct {
  std::atomic<ring_fault> what{ring_fault::none};
  std::atomic<std::size_t> before{0}, count{0}, every{1};
  std::atomic<std::size_t> seen{0}, struck{0};
} now;
std::atomic<ring_lack> lacking{ring_lack::none};

// The polls that were handed to each ring, in their order.
struct armed {
  const io_uring* in;
  std::uint64_t user_data;
};
std::mutex lock;  // of what follows
std::vector<armed> polls;
std::vector<armed> doomed;  // of which the last completion is to be lost

void note_polls(io_uring* ring) {
  const std::lock_guard guard{lock};
  for (unsigned i = ring->sq.sqe_head; i != ring->sq.sqe_tail; ++i) {
    const io_uring_sqe& one = ring->sq.sqes[i & ring->sq.ring_mask];
    if (one.opcode == IORING_OP_POLL_ADD) polls.push_back({ring, one.user_data});
  }
}

// One that is over already is no more than looked for in vain.
bool end_poll(io_uring* ring, bool newest, bool is_lost = false) {
  std::uint64_t chosen = 0;
  {
    const std::lock_guard guard{lock};
    const auto is_its = [ring](const armed& one) { return one.in == ring; };
    const auto at = newest ? std::ranges::find_if(polls.rbegin(), polls.rend(), is_its).base()
                           : std::ranges::find_if(polls, is_its);
    if (newest ? at == polls.begin() : at == polls.end()) return false;
    chosen = (newest ? at - 1 : at)->user_data;
    polls.erase(newest ? at - 1 : at);
    if (is_lost) doomed.push_back({ring, chosen});
  }
  io_uring_sqe* const to = ::io_uring_get_sqe(ring);
  if (to == nullptr) return false;
  ::io_uring_prep_cancel64(to, chosen, 0);
  ::io_uring_sqe_set_data64(to, 0);
  to->flags |= IOSQE_CQE_SKIP_SUCCESS;
  return true;
}

// Those of one poll stay in their order.
bool reverse(io_uring* ring) {
  std::vector<io_uring_cqe*> all;
  unsigned head = 0;
  io_uring_cqe* one;
  io_uring_for_each_cqe(ring, head, one) all.push_back(one);
  std::vector<std::uint64_t> seen;
  for (const io_uring_cqe* each : all) {
    if (std::ranges::find(seen, each->user_data) != seen.end()) return false;
    seen.push_back(each->user_data);
  }
  for (std::size_t i = 0; i < all.size() / 2; ++i) std::swap(*all[i], *all[all.size() - 1 - i]);
  return all.size() > 1;
}

// Takes completions away, as if they had found no room, nor memory to be kept.
std::size_t lose(io_uring* ring, bool calls) {
  const auto is_lost = [=](const io_uring_cqe& one) {
    if ((one.flags & IORING_CQE_F_MORE) != 0 || one.user_data == 0) return false;
    if ((one.user_data & 2) != 0) return calls;
    return std::erase_if(doomed,
                         [&](const armed& each) { return each.in == ring && each.user_data == one.user_data; }) != 0;
  };
  const std::lock_guard guard{lock};
  const unsigned head = *ring->cq.khead, tail = io_uring_smp_load_acquire(ring->cq.ktail);
  unsigned kept = tail;
  for (unsigned i = tail; i != head;) {
    const io_uring_cqe& one = ring->cq.cqes[--i & ring->cq.ring_mask];
    if (!is_lost(one)) ring->cq.cqes[--kept & ring->cq.ring_mask] = one;
  }
  const unsigned count = kept - head;
  ::io_uring_cq_advance(ring, count);
  *ring->cq.koverflow += count;
  return count;
}

// `go` enters the ring.
template <class Go>
int enter(io_uring* ring, Go go) {
  const ring_fault what = now.what.load(std::memory_order_acquire);  // <- the constructor of an injection
  if (what == ring_fault::none) return go();
  note_polls(ring);
  const std::size_t mine = now.seen.fetch_add(1);
  const bool loses_polls = what == ring_fault::loses_oldest || what == ring_fault::loses_newest;
  const auto go_and_lose = [&](bool calls) {
    const int came = go();
    const std::size_t count = lose(ring, calls);
    now.struck += count;
    return count != 0 && ::io_uring_cq_ready(ring) == 0 ? -EBADR : came;
  };
  if (mine < now.before || mine - now.before >= now.count || (mine - now.before) % now.every != 0)
    return loses_polls ? go_and_lose(false) : go();
  switch (what) {
    case ring_fault::refused: ++now.struck; return mine % 2 == 0 ? -EAGAIN : -EBUSY;
    case ring_fault::late: ++now.struck; return 0;
    case ring_fault::oldest_ends:
    case ring_fault::newest_ends: now.struck += end_poll(ring, what == ring_fault::newest_ends) ? 1 : 0; return go();
    case ring_fault::reversed: {
      const int came = go();
      now.struck += reverse(ring) ? 1 : 0;
      return came;
    }
    case ring_fault::loses_oldest:
    case ring_fault::loses_newest:
      static_cast<void>(end_poll(ring, what == ring_fault::loses_newest, true));
      return go_and_lose(false);
    case ring_fault::loses_calls: return go_and_lose(true);
    default: return go();
  }
}

}  // namespace

ring_injection::ring_injection(ring_fault what, std::size_t before, std::size_t count, std::size_t every) noexcept {
  now.before = before;
  now.count = count;
  now.every = every;
  now.seen = now.struck = 0;
  now.what.store(what, std::memory_order_release);  // -> who enters
}
ring_injection::~ring_injection() {
  now.what = ring_fault::none;
  const std::lock_guard guard{lock};
  doomed.clear();
}
std::size_t ring_injection::struck() const noexcept { return now.struck; }  // NOLINT: of this one

namespace {
std::atomic<bool> is_behind{false};
std::atomic<std::size_t> looks_all{0}, looks_behind{0}, looks_in_vain{0};
}  // namespace
looks::looks() noexcept { looks_all = looks_behind = looks_in_vain = 0; }
looks::~looks() { is_behind = false; }
// NOLINTBEGIN(readability-convert-member-functions-to-static): of this one
void looks::begins_here() noexcept { is_behind = true; }
std::size_t looks::all() const noexcept { return looks_all; }
std::size_t looks::behind() const noexcept { return looks_behind; }
std::size_t looks::in_vain() const noexcept { return looks_in_vain; }
// NOLINTEND(readability-convert-member-functions-to-static)

lacks::lacks(ring_lack what) noexcept { lacking = what; }
lacks::~lacks() { lacking = ring_lack::none; }

}  // namespace test

using test::enter;
using test::lacking;
using test::ring_fault;
using test::ring_lack;

extern "C" {

int __wrap_io_uring_submit(io_uring* ring) {
  return enter(ring, [ring] { return __real_io_uring_submit(ring); });
}

int __wrap_io_uring_submit_and_get_events(io_uring* ring) {
  const int came = enter(ring, [ring] { return __real_io_uring_submit_and_get_events(ring); });
  if (lacking == ring_lack::no_multishot) {
    unsigned head = 0;
    io_uring_cqe* one;
    io_uring_for_each_cqe(ring, head, one) one->flags &= ~IORING_CQE_F_MORE;
  }
  return came;
}

int __wrap_io_uring_submit_and_wait(io_uring* ring, unsigned least) {
  return enter(ring, [=] { return __real_io_uring_submit_and_wait(ring, least); });
}

int __wrap_io_uring_submit_and_wait_timeout(io_uring* ring, io_uring_cqe** first, unsigned least,
                                            __kernel_timespec* most, sigset_t* signals) {
  return enter(ring, [=] { return __real_io_uring_submit_and_wait_timeout(ring, first, least, most, signals); });
}

int __wrap_io_uring_queue_init_params(unsigned submissions, io_uring* ring, io_uring_params* how) {
  switch (lacking) {
    case ring_lack::forbidden: return -EPERM;
    case ring_lack::not_there: return -ENOSYS;
    case ring_lack::unknown_flags: return -EINVAL;
    case ring_lack::no_memory: return -ENOMEM;
    case ring_lack::no_numbers: return -EMFILE;
    default: break;
  }
  const int came = __real_io_uring_queue_init_params(submissions, ring, how);
  switch (lacking) {
    case ring_lack::no_nodrop: how->features &= ~IORING_FEAT_NODROP; break;
    case ring_lack::no_ext_arg: how->features &= ~IORING_FEAT_EXT_ARG; break;
    case ring_lack::no_cqe_skip: how->features &= ~IORING_FEAT_CQE_SKIP; break;
    case ring_lack::no_submit_stable: how->features &= ~IORING_FEAT_SUBMIT_STABLE; break;
    default: break;
  }
  return came;
}

void __wrap_io_uring_queue_exit(io_uring* ring) {
  {
    const std::lock_guard guard{test::lock};
    for (auto* const those : {&test::polls, &test::doomed})
      std::erase_if(*those, [ring](const test::armed& one) { return one.in == ring; });
  }
  __real_io_uring_queue_exit(ring);
}

int __wrap_uname(utsname* into) {
  const int came = __real_uname(into);
  if (lacking == ring_lack::old_kernel) std::strcpy(into->release, "5.15.0-91-generic");  // NOLINT: it has room
  return came;
}

int __wrap_poll(pollfd* those, nfds_t count, int milliseconds) {
  const bool counted = test::is_behind;
  ++test::looks_all;
  if (counted) ++test::looks_behind;
  const int came = __real_poll(those, count, milliseconds);
  if (counted && came <= 0) ++test::looks_in_vain;
  return came;
}

long __wrap_syscall(long number, ...) {
  va_list rest;
  va_start(rest, number);
  long arguments[6];
  for (long& one : arguments) one = va_arg(rest, long);
  va_end(rest);
  if (number == SYS_io_uring_register && lacking == ring_lack::not_enabled) {
    errno = EINVAL;
    return -1;
  }
  constexpr long sync_cancel = 24;  // IORING_REGISTER_SYNC_CANCEL
  // What is at work has ended by then, and waits for its ring to be entered.
  if (number == SYS_io_uring_register && arguments[1] == sync_cancel && test::now.what == ring_fault::loses_calls)
    std::this_thread::sleep_for(std::chrono::milliseconds{2});
  const auto [a, b, c, d, e, f] = arguments;
  return __real_syscall(number, a, b, c, d, e, f);
}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

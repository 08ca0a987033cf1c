#include "io/uring.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>
#include <weft/error.hpp>

#include "base/thread_id.hpp"
#include "pool/pool_core.hpp"

namespace weft::detail {
namespace {

// The events of a completion come either from a wake-up by the socket or from a query of its state. A socket wakes its polls
// with POLLPRI and POLLRDBAND for whatever it has received. When queried, it gives POLLPRI only if there is urgent data, and
// POLLRDBAND never. So POLLPRI means urgent data only without POLLRDBAND.
constexpr unsigned asked_in = POLLIN | POLLPRI | POLLRDBAND | POLLRDHUP;
bool is_urgent(int events) noexcept { return (events & (POLLPRI | POLLRDBAND)) == POLLPRI; }

}  // namespace

// ---- a worker ---------------------------------------------------------------------------------------------------------------

uring_worker::uring_worker(uring& of) : of_{&of}, wake_fd_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)} {
  if (wake_fd_ < 0) throw error{std::error_code{errno, std::generic_category()}, "make a ring"};
}

uring_worker::~uring_worker() { ::close(wake_fd_); }

std::uintptr_t uring_worker::this_owner() noexcept { return this_thread_id(); }

void uring_worker::begin_here() noexcept {
  if (is_here()) return;
  const int refused = ring_.begin();
  WEFT_EXPECTS(refused == 0, "the kernel has refused to begin a ring that it has made");
  owner_.store(this_owner(), std::memory_order_relaxed);  // as declared
}

void uring_worker::poll_wake_fd() noexcept {
  io_uring_sqe* const to = ring_.submission();
  if (to == nullptr) return;
  ::io_uring_prep_poll_multishot(to, wake_fd_, POLLIN);
  ::io_uring_sqe_set_data64(to, of_wake_fd);
  polls_wake_fd_ = true;
}

void uring_worker::commit(time_point until) noexcept {
  const bool uses_ring = in_kernel_ != 0 || ring_.has_submissions();
  must_find_lost_ = uses_ring && has_lost_some();
  if (must_find_lost_) [[unlikely]]
    return;  // poll() calls find_lost(), which may wake tasks: commit() must not
  if (uses_ring && !polls_wake_fd_) poll_wake_fd();
  if (uses_ring && !polls_wake_fd_) return;  // the submission queue is full: the worker comes back here
  if (!word_.fall_asleep(uses_ring ? sleep_word::in_kernel : sleep_word::on_word)) return;
  if (has_asked()) {  // requests put in before the sleep word changed are seen here; later ones wake the worker
    perform_asked();
  } else if (uses_ring) {
    has_calls_ = has_found_none_ = false;
    ring_.wait(until);
    count(waits_, 1);
  } else {
    word_.sleep_on_word(until);
  }
  word_.rise();  // from here on the guard may find the worker stuck
  note_unfinished();
}

void uring_worker::wake() noexcept {
  word_.wake([this] {
    const std::uint64_t one = 1;
    interrupts_.fetch_add(1, std::memory_order_relaxed);      // as declared
    static_cast<void>(!::write(wake_fd_, &one, sizeof one));  // fails only after 2^64 of them
  });
}

// Makes no system call unless there are completions to fetch, submissions to hand over, or a stuck worker.
bool uring_worker::poll(bool between_jobs) noexcept {
  count(looks_, 1);
  perform_asked();
  const bool has_ended_some = std::exchange(has_ended_some_, false);  // also set by commit()
  const bool has_looked = of_->look_after_stuck(*this) || has_ended_some;
  if (in_kernel_ == 0 && !ring_.has_submissions()) return has_looked;
  if (std::exchange(was_idle_, false)) of_->has_left();
  // Calls on files are submitted when the worker has found no job twice in a row: after the first time it may be about to
  // sleep, and then the sleep submits them.
  const bool calls_go = has_calls_ && std::exchange(has_found_none_, true);
  if (ring_.has_work() || calls_go || must_find_lost_ || (between_jobs && ring_.has_submissions())) {
    has_calls_ = has_found_none_ = must_find_lost_ = false;
    ring_.enter();
    count(waits_, 1);
    if (has_lost_some()) [[unlikely]] {
      find_lost();
      return true;
    }
  }
  if (!ring_.has_completions()) return has_looked;
  return reap() || has_looked;
}

bool uring_worker::look() noexcept {
  perform_asked();
  if (ring_.has_work() || ring_.has_submissions()) ring_.enter();
  return ring_.has_completions() || has_lost_some() || std::exchange(has_ended_some_, false);
}

void uring_worker::report() noexcept {
  if (has_lost_some()) find_lost();
  reap();
}

bool uring_worker::reap() noexcept {
  std::array<io_uring_cqe, 128> those;  // a copy: code that runs inside completed() may enter the ring
  const unsigned count_taken = ring_.take(those.data(), static_cast<unsigned>(those.size()));
  for (unsigned i = 0; i != count_taken; ++i) completed(those[i]);
  note_unfinished();
  return count_taken != 0;
}

void uring_worker::completed(const io_uring_cqe& what) noexcept {
  const bool goes_on = (what.flags & IORING_CQE_F_MORE) != 0;
  if (what.user_data == of_nobody) return;
  if (what.user_data == of_wake_fd) {
    polls_wake_fd_ = goes_on;
    return;
  }
  if ((what.user_data & of_call) != 0) {
    ended(*reinterpret_cast<ring_call*>(what.user_data & ~of_call),
          what.res);  // NOLINT: an address, as begin() packs it
    return;
  }
  auto& one = *reinterpret_cast<descriptor*>(what.user_data & ~of_out);  // NOLINT: an address, as packed
  const direction which = (what.user_data & of_out) == 0 ? direction::in : direction::out;
  count(changes_, 1);
  if (!goes_on) {
    one.ring.armed &= static_cast<std::uint8_t>(~bit(which));
    --in_kernel_;
  }
  if (one.ring.is_retired) {
    // Not while it is in the inbox again, as it is if the submission queue had no room for a cancellation.
    if (one.ring.armed == 0 && !one.ring.asks.any())  // only this thread makes requests for a retired descriptor
      of_->use_again(one);                            // the memory may be reused after this line
    return;
  }
  const auto events = what.res < 0 ? POLLERR : what.res;
  const bool all = (events & POLLHUP) != 0, failed = (events & POLLERR) != 0;
  // After the poll has ended, changes go unreported: the next operation tries, and arms the direction anew if it must wait.
  if (!goes_on) one.disarm(which);
  one.report(one.generation(), {.in = which == direction::in && (failed || (events & POLLIN) != 0),
                                .out = which == direction::out && (failed || (events & POLLOUT) != 0),
                                .in_ended = all || (events & POLLRDHUP) != 0,
                                .out_ended = all,
                                .urgent = is_urgent(events),
                                .may_be_urgent = (events & POLLRDBAND) != 0});
}

void uring_worker::note_unfinished() noexcept {
  const bool now = ring_.has_submissions() || ring_.has_completions();
  if (has_unfinished_.load(std::memory_order_relaxed) != now)  // as declared
    has_unfinished_.store(now, std::memory_order_relaxed);     // as declared
}

// ---- requests of others -----------------------------------------------------------------------------------------------------

void uring_worker::ask(descriptor& one, std::uint32_t what) noexcept {
  if (!one.ring.asks.add(what)) return;
  if (is_here()) return perform_one(one);
  inbox_.put(one);
  wake();
}

void uring_worker::perform(descriptor* asked) noexcept {
  while (asked != nullptr) perform_one(*std::exchange(asked, asked->next));
}

void uring_worker::perform_one(descriptor& one) noexcept {
  begin_here();
  const std::uint32_t what = one.ring.asks.take();
  std::uint32_t left = 0;
  if ((what & retire) != 0) {
    if (!cancel(one)) left = retire;
  } else if ((what & unwatch) != 0) {  // closed: no poll that is asked for besides would report anything
    if (!cancel_polls(one)) left = unwatch;
  } else {
    for (const direction which : {direction::in, direction::out})
      if ((what & bit(which)) != 0 && !arm(one, which)) left |= bit(which);
  }
  note_unfinished();
  // The kernel takes no submission now: the rest is done at the next perform_asked().
  if (left != 0 && one.ring.asks.add(left)) inbox_.put(one);
}

bool uring_worker::arm(descriptor& one, direction which) noexcept {
  if ((one.ring.armed & bit(which)) != 0) return true;  // disarmed with the other direction, whose poll alone had ended
  io_uring_sqe* const to = ring_.submission();
  if (to == nullptr) return false;
  const unsigned asked = which == direction::in ? asked_in : POLLOUT;
  if (one.reports_once())
    ::io_uring_prep_poll_add(to, one.number(), asked);
  else
    ::io_uring_prep_poll_multishot(to, one.number(), asked);
  ::io_uring_sqe_set_data64(to, packed(one, which));
  one.ring.armed |= static_cast<std::uint8_t>(bit(which));
  ++in_kernel_;
  return true;
}

// Cancels the polls of a descriptor without users. False: the submission queue had no room for all cancellations.
bool uring_worker::cancel(descriptor& one) noexcept {
  one.ring.is_retired = true;
  if (one.ring.armed != 0) return cancel_polls(one);
  of_->use_again(one);  // the memory may be reused after this line
  return true;
}

bool uring_worker::cancel_polls(descriptor& one) noexcept {
  for (const direction which : {direction::in, direction::out}) {
    if ((one.ring.armed & bit(which)) == 0) continue;
    io_uring_sqe* const to = ring_.submission();
    if (to == nullptr) return false;
    ::io_uring_prep_cancel64(to, packed(one, which), 0);
    ::io_uring_sqe_set_data64(to, of_nobody);
    to->flags |= IOSQE_CQE_SKIP_SUCCESS;
  }
  // A shared file was not shut down by close(): so the peer learns of the close only by this cancellation.
  if (one.is_shared_.load(std::memory_order_relaxed) && one.ring.armed != 0) ring_.enter();  // as declared
  return true;
}

// ---- the guard --------------------------------------------------------------------------------------------------------------

bool uring_worker::is_stuck() noexcept {
  const std::uint64_t looks = looks_.load(std::memory_order_relaxed);  // as declared
  const bool same = std::exchange(looks_seen_, looks) == looks;
  if (!same || word_.is_asleep()) return false;
  return has_unfinished_.load(std::memory_order_relaxed) || has_asked() || ring_.has_work();  // as declared
}

bool uring::needs_one(bool) noexcept {
  bool any = false;
  for (const auto& one : workers_)
    if (one->is_stuck()) {
      one->has_stuck.store(true, std::memory_order_relaxed);  // as declared
      any = true;
    }
  if (any) is_any_stuck_.store(true, std::memory_order_relaxed);  // as declared
  return any;
}

bool uring::look_after_stuck(const uring_worker& by) noexcept {
  if (!is_any_stuck_.load(std::memory_order_relaxed)) [[likely]]  // as declared
    return false;
  if (!is_any_stuck_.exchange(false, std::memory_order_relaxed)) return false;  // as declared
  for (const auto& one : workers_)
    if (one->has_stuck.exchange(false, std::memory_order_relaxed) && one.get() != &by)  // as declared
      look_after(*one);
  return true;
}

// Calls poll() for the descriptors that are waited for in the stuck worker's ring, and reports those that are ready. The ring
// reports the same changes again later, which causes at most one try each that finds nothing.
void uring::look_after(uring_worker& stuck) noexcept {
  constexpr std::size_t at_once = 256;
  struct asked {
    descriptor* of;
    std::uint16_t generation;
  };
  std::array<pollfd, at_once> states;
  std::array<asked, at_once> those;
  std::size_t from = 0;
  for (bool more = true; more;) {
    std::size_t count = 0;
    more = for_each(from, [&](descriptor& one) {
      if (one.ring.home.load(std::memory_order_relaxed) != &stuck || one.is_closed()) return true;  // as declared
      short events = 0;
      if (one.is_armed(direction::in) && !one.may_try(direction::in)) events |= POLLIN | POLLRDHUP;
      if (one.is_armed(direction::out) && !one.may_try(direction::out)) events |= POLLOUT;
      if (events == 0) return true;
      states[count] = {.fd = one.number(), .events = events, .revents = 0};
      those[count++] = {.of = &one, .generation = one.generation()};
      return count != at_once;
    });
    if (count == 0 || ::poll(states.data(), count, 0) <= 0) continue;
    for (std::size_t i = 0; i != count; ++i) {
      const int events = states[i].revents;
      if (events == 0 || (events & POLLNVAL) != 0) continue;  // POLLNVAL: it was closed meanwhile
      const bool either = (events & (POLLERR | POLLHUP)) != 0;
      those[i].of->report(those[i].generation, {.in = either || (events & (POLLIN | POLLRDHUP)) != 0,
                                                .out = either || (events & POLLOUT) != 0});
    }
  }
}

// ---- the service ------------------------------------------------------------------------------------------------------------

uring::uring(unsigned workers, ring_size size) : size_{size} {
  for (unsigned i = 0; i != workers; ++i) workers_.push_back(std::make_unique<uring_worker>(*this));
}

uring::~uring() {
  if (!is_inherited()) wait_for_visitors();
  WEFT_EXPECTS(
      is_inherited() || watched() == 0,
      "a runtime was destroyed before a stream, a listener or another descriptor that was made in it, and that "
      "still uses the runtime");
}

// Halves the rings while they need more memory than the process may lock. Then waits, up to 63 ms: the kernel frees the memory
// of closed rings with a delay.
int uring::make_rings() noexcept {
  int refused = 0, tries = 0;
  for (const auto& one : workers_)
    while ((refused = one->make_ring(size_)) != 0) {
      if (refused != -ENOMEM || tries == 6) return -refused;
      if (size_.submissions > 8)
        size_ = {.submissions = size_.submissions / 2, .completions = size_.completions / 2};
      else
        std::this_thread::sleep_for(std::chrono::milliseconds{1 << tries++});
    }
  return 0;
}

int uring::begin_to_watch(descriptor& one) noexcept {
  one.ring.home.store(nullptr, std::memory_order_relaxed);  // nobody else has it yet
  one.ring.is_retired = false;
  struct stat what;
  if (::fstat(one.number(), &what) != 0) return errno;
  return S_ISREG(what.st_mode) || S_ISDIR(what.st_mode) ? EPERM : 0;  // the error that epoll_ctl() gives
}

void uring::begin_here() noexcept {
  begin_alone();
  worker(0).begin_here();
}

// The index of the calling worker; the number of workers, or more, for a thread that is no worker.
unsigned uring::worker_here() const noexcept {
  if (const pool_core* const pool = workers(); pool != nullptr) return pool->worker_id();
  return worker(0).is_here() ? 0 : static_cast<unsigned>(workers_.size());
}

void uring::arm(descriptor& one, direction which) noexcept {
  const std::uint32_t its = uring_worker::bit(which);
  if ((one.armed_.fetch_or(its | descriptor::kept, std::memory_order_relaxed) & its) != 0) return;  // as declared
  uring_worker* home = one.ring.home.load(std::memory_order_relaxed);                               // as declared
  if (home == nullptr) {
    const auto size = static_cast<unsigned>(workers_.size());
    unsigned which_worker = worker_here();
    if (which_worker == size) which_worker = next_home_.fetch_add(1, std::memory_order_relaxed) % size;  // as declared
    uring_worker* const chosen = workers_[which_worker].get();
    if (one.ring.home.compare_exchange_strong(home, chosen, std::memory_order_relaxed,  // as declared
                                              std::memory_order_relaxed))               // as declared
      home = chosen;
  }
  home->ask(one, its);
  has_left();
}

void uring::cancel_polls(descriptor& one) noexcept {
  if (uring_worker* const home = one.ring.home.load(std::memory_order_relaxed); home != nullptr)  // as declared
    home->ask(one, uring_worker::unwatch);
}

bool uring::retire(descriptor& one) noexcept {
  uring_worker* const home = one.ring.home.load(std::memory_order_relaxed);  // as declared
  if (home == nullptr) return true;
  home->ask(one, uring_worker::retire);
  return false;
}

io_stats uring_worker::so_far() const noexcept {
  return {.watched = 0,
          .waits = waits_.load(std::memory_order_relaxed),  // as declared
          .changes = changes_.load(std::memory_order_relaxed),
          .interrupts = interrupts_.load(std::memory_order_relaxed)};
}

io_stats uring::stats() const noexcept {
  io_stats all{.watched = watched()};
  for (const auto& one : workers_) {
    const io_stats its = one->so_far();
    all.waits += its.waits;
    all.changes += its.changes;
    all.interrupts += its.interrupts;
  }
  return all;
}

}  // namespace weft::detail

// poll, select and epoll_wait.
//
// A call for one descriptor and one direction waits as a read does. Any other call makes an epoll set of its descriptors, and
// waits until that set is readable. After each change the C library's poll() or select() is called with a timeout of zero, and
// its answer is what the hook returns. Where the system gives no set, or can't watch a descriptor, it is called after pauses.
//
// A call with a signal mask blocks the thread: a signal mask belongs to a thread, not to a fiber.
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <climits>
#include <memory>
#include <new>

#include "hook/descriptors.hpp"
#include "hook/next.hpp"
#include "hook/program_memory.hpp"
#include "io/io_service.hpp"

extern "C" {
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
int __poll_chk(pollfd* those, nfds_t count, int limit, std::size_t room);
int __ppoll_chk(pollfd* those, nfds_t count, const timespec* limit, const sigset_t* mask, std::size_t room);
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)
}

namespace weft::detail {
namespace {

WEFT_HOOK_NEXT(ppoll);
WEFT_HOOK_NEXT(select);
WEFT_HOOK_NEXT(pselect);
WEFT_HOOK_NEXT(epoll_wait);
WEFT_HOOK_NEXT(epoll_pwait);
WEFT_HOOK_NEXT(__poll_chk);
WEFT_HOOK_NEXT(__ppoll_chk);

using std::chrono::milliseconds;
using weft::hook_options;

// An epoll set of the descriptors of one call, which lives as long as the call.
class temporary_epoll_set {
 public:
  temporary_epoll_set(const pollfd* those, std::size_t count) noexcept
      : those_{those}, count_{count}, set_{::epoll_create1(EPOLL_CLOEXEC)} {}
  temporary_epoll_set(const temporary_epoll_set&) = delete;
  ~temporary_epoll_set() {
    listeners_.reset();  // first, since they wake who waits for the set
    if (at_ != nullptr) {
      static_cast<void>(at_->release());
      at_->drop();
    }
    if (set_ >= 0) ::close(set_);
  }
  /// Waits until look() gives something else than 0, or the time is over.
  template <class Look>
  waited wait_until(clock::time_point until, Look look) noexcept {
    waited how = begin();
    while (how == waited::ready) {
      at_->expect_change(direction::in);
      if (is_one_closed()) return waited::closed;
      if (look() != 0) break;
      how = wait_for_change(*at_, direction::in, until);
    }
    return how;
  }

 private:
  waited begin() noexcept {
    if (set_ < 0) return waited::impossible;
    for (const pollfd* one = those_; one != those_ + count_; ++one)
      if (one->fd >= 0 && !add(*one)) return waited::impossible;
    listeners_.reset(new (std::nothrow) close_listener[count_]);
    if (!listeners_) return waited::no_memory;
    try {
      at_ = &io_service_here().watch(set_, false);
    } catch (const std::bad_alloc&) {
      return waited::no_memory;
    } catch (...) {
      return waited::impossible;
    }
    for (std::size_t i = 0; i != count_; ++i)
      if (those_[i].fd >= 0) listeners_[i].begin(those_[i].fd, *at_);
    return waited::ready;
  }
  // False: it can't be watched. A descriptor that is in the set already is watched for all events that the call asks of it. For
  // no others: the wait would end for those.
  bool add(const pollfd& added) noexcept {
    epoll_event one{.events = static_cast<unsigned short>(added.events), .data = {.u64 = 0}};
    if (::epoll_ctl(set_, EPOLL_CTL_ADD, added.fd, &one) == 0) return true;
    // EPERM: epoll can't watch the file, which is always ready. EBADF: poll() or select() reports it.
    if (errno != EEXIST) return errno == EPERM || errno == EBADF;
    one.events = 0;
    for (const pollfd* each = those_; each != those_ + count_; ++each)
      if (each->fd == added.fd) one.events |= static_cast<unsigned short>(each->events);
    return ::epoll_ctl(set_, EPOLL_CTL_MOD, added.fd, &one) == 0;
  }
  bool is_one_closed() const noexcept {
    return std::any_of(listeners_.get(), listeners_.get() + count_,
                       [](const close_listener& one) { return one.is_closed(); });
  }

  const pollfd* those_;
  std::size_t count_;
  int set_;
  descriptor* at_ = nullptr;  // the set's, by which the fiber waits
  std::unique_ptr<close_listener[]> listeners_;
};

// Looks after 1 ms, then 2 ms, up to 64 ms: for descriptors of which no event tells.
template <class Look>
waited look_with_pauses(clock::time_point until, Look look) noexcept {
  for (clock::duration pause = milliseconds{1}; look() == 0;
       pause = std::min<clock::duration>(2 * pause, milliseconds{64})) {
    const clock::duration left = until == without_end ? pause : until - current_clock().now();
    if (left <= clock::duration::zero()) return waited::timed_out;
    if (!await_unless_stopped(sleep_for(std::min(left, pause)))) return waited::stopped;
  }
  return waited::ready;
}

constexpr unsigned in_events = POLLIN | POLLRDNORM | POLLRDHUP, out_events = POLLOUT | POLLWRNORM;

// Waits until look() gives something else than 0. The caller has called look() before, so `those` are known to be readable.
template <class Look>
int wait_for_any(const hooked_call& call, const pollfd* those, std::size_t count, clock::time_point until,
                 Look look) noexcept {
  int found = 0;
  const auto finds = [&] { return (found = look()) != 0; };
  waited how = waited::ready;
  if (count == 0) return await_unless_stopped(sleep_until(until)) ? call.give(0) : call.fail(ECANCELED);
  // poll() reports these events even if the program did not ask. Ignored here, since libpq asks for them.
  constexpr unsigned always = POLLERR | POLLHUP | POLLNVAL;
  const unsigned events = count == 1 && those->fd >= 0 ? static_cast<unsigned short>(those->events) & ~always : 0U;
  if (events != 0 && ((events & ~in_events) == 0 || (events & ~out_events) == 0)) {
    how = wait_until(call, those->fd, (events & ~in_events) == 0 ? direction::in : direction::out, until, finds);
  } else {
    how = temporary_epoll_set{those, count}.wait_until(until, finds);
    if (how == waited::timed_out) found = look();  // one may have become ready since the last look
  }
  if (how == waited::impossible) how = look_with_pauses(until, finds);
  return how == waited::ready || how == waited::timed_out ? call.give(found) : call.fail(error_of(how, 0));
}

template <class Plain>
int poll_hooked(const hooked_call& call, pollfd* those, nfds_t count, clock::duration limit, Plain plain) noexcept {
  if (!may_begin(call)) return call.fail(ECANCELED);
  const auto look = [&] { return next_poll(those, count, 0); };
  const int found = look();
  if (found != 0 || limit == clock::duration::zero()) return call.give(found);
  return may_suspend() ? wait_for_any(call, those, count, after(limit), look) : call.give(plain());
}

// ---- select -----------------------------------------------------------------------------------------------------------------

// How many of a select's numbers the system looks at: those that its table of descriptors has room for, of which the size is 64,
// and doubles as it grows. It reads and writes no more of the sets, and a number beyond the table fails no call.
int cut_to_table(int count) noexcept {
  const auto is_in_table = [](int number) noexcept {
    if (::fcntl(number, F_GETFD) >= 0) return true;
    const auto at = static_cast<std::size_t>(number);
    const std::unique_ptr<unsigned char[]> set{new (std::nothrow) unsigned char[at / 64 * 8 + 8]{}};
    if (!set) return true;
    set[at / 8] = static_cast<unsigned char>(1U << (at % 8));
    timeval none{0, 0};
    return next_select(number + 1, reinterpret_cast<fd_set*>(set.get()), nullptr, nullptr, &none) < 0;  // EBADF
  };
  if (count <= 64 || ::fcntl(count - 1, F_GETFD) >= 0) return count;
  int size = 64;
  while (size < count && is_in_table(size)) size = size < INT_MAX / 2 ? 2 * size : INT_MAX;
  return std::min(size, count);
}

// Copies of a select's sets, of the size that `count` implies.
class copied_sets {
 public:
  copied_sets(int count, const fd_set* in, const fd_set* out, const fd_set* other) noexcept
      : count_{count}, size_{(static_cast<std::size_t>(count) + 63) / 64 * 8} {
    const std::array<const fd_set*, 3> those{in, out, other};
    for (std::size_t i = 0; i != 3; ++i) {
      if (those[i] == nullptr) continue;
      bits_[i].reset(new (std::nothrow) unsigned char[size_]);
      if (!bits_[i]) has_memory_ = false;
      // select() reads whole words, so a set has memory up to the end of its last word.
      else if (!copy_from_program(bits_[i].get(), those[i], size_))
        are_read_ = false;
    }
  }
  bool has_memory() const noexcept { return has_memory_; }
  /// False: one is not the program's memory.
  bool are_read() const noexcept { return are_read_; }

  /// Writes the copies back.
  void restore(fd_set* in, fd_set* out, fd_set* other) const noexcept {
    const std::array<fd_set*, 3> those{in, out, other};
    for (std::size_t i = 0; i != 3; ++i)
      if (bits_[i]) copy_to_program(those[i], bits_[i].get(), size_);
  }
  /// The sets as an array of pollfd. Returns its length; -1: there is no memory.
  int to_pollfds(std::unique_ptr<pollfd[]>& into) const noexcept {
    into.reset(new (std::nothrow) pollfd[static_cast<std::size_t>(count_)]);
    if (!into) return -1;
    int found = 0;
    for (int number = 0; number != count_; ++number) {
      const unsigned events = (has(0, number) ? unsigned{POLLIN} : 0U) | (has(1, number) ? unsigned{POLLOUT} : 0U) |
                              (has(2, number) ? unsigned{POLLPRI} : 0U);
      if (events != 0) into[found++] = {.fd = number, .events = static_cast<short>(events), .revents = 0};
    }
    return found;
  }

 private:
  bool has(std::size_t set, int number) const noexcept {
    const auto at = static_cast<std::size_t>(number);
    return bits_[set] && ((bits_[set][at / 8] >> (at % 8)) & 1U) != 0;
  }
  int count_;
  std::size_t size_;
  std::array<std::unique_ptr<unsigned char[]>, 3> bits_;
  bool has_memory_ = true, are_read_ = true;
};

// Whether select() reports what poll() has found in one of `those`. What it does not report, such as the end of a connection that
// is in the third set alone, is not waited for any more.
bool is_in_sets(pollfd* those, int count) noexcept {
  bool is = false;
  for (pollfd* one = those; one != those + count; ++one) {
    if (one->fd < 0 || one->revents == 0) continue;
    const unsigned asked = static_cast<unsigned short>(one->events);
    const unsigned counts = asked | POLLNVAL | ((asked & POLLIN) != 0 ? unsigned{POLLHUP | POLLERR} : 0U) |
                            ((asked & POLLOUT) != 0 ? unsigned{POLLERR} : 0U);
    if ((static_cast<unsigned short>(one->revents) & counts) != 0)
      is = true;
    else
      one->fd = -1;
  }
  return is;
}

// After select() has reported none of what poll() has found: what is no descriptor is beyond the table, and waited for no more.
void drop_what_is_none(pollfd* those, int count) noexcept {
  for (pollfd* one = those; one != those + count; ++one)
    if ((one->revents & POLLNVAL) != 0 && ::fcntl(one->fd, F_GETFD) < 0) one->fd = -1;
}

// The result of a select in a fiber. False in `is_there`: the plain call must be made, which may block.
struct selected {
  bool is_there = false;
  int found = -1;
};
selected select_hooked(const hooked_call& call, int count, fd_set* in, fd_set* out, fd_set* other,
                       clock::time_point until) noexcept {
  if (!may_begin(call)) return {true, call.fail(ECANCELED)};
  count = cut_to_table(count);
  const copied_sets sets{count, in, out, other};
  if (sets.has_memory() && !sets.are_read()) return {};
  std::unique_ptr<pollfd[]> those;
  const int numbers = sets.has_memory() ? sets.to_pollfds(those) : -1;
  if (numbers < 0) return {true, call.fail(ENOMEM)};  // select() may fail so, and would block
  // Waits with poll() for the same descriptors, since select() overwrites its sets even when nothing is ready.
  const auto look = [&] { return next_poll(those.get(), static_cast<nfds_t>(numbers), 0); };
  for (;;) {
    int ready = look();
    if (ready == 0 && !may_suspend()) return {};
    if (ready == 0) ready = wait_for_any(call, those.get(), static_cast<std::size_t>(numbers), until, look);
    if (ready < 0) return {true, ready};
    if (ready > 0 && !is_in_sets(those.get(), numbers)) continue;
    timeval none{0, 0};
    const int found = next_select(count, in, out, other, &none);
    if (found != 0 || ready == 0) return {true, call.give(found)};
    sets.restore(in, out, other);  // somebody else took what poll() had found
    drop_what_is_none(those.get(), numbers);
  }
}

}  // namespace

extern const char hooks_poll;
const char hooks_poll = 0;  // makes the linker include this file; see all_sources in fiber_hooks.cpp

}  // namespace weft::detail

using namespace weft::detail;  // NOLINT(google-build-using-namespace): the hooks below belong to weft

extern "C" {

int poll(pollfd* those, nfds_t count, int limit) {
  const hooked_call call{&hook_options::poll};
  if (!call) return next_poll(those, count, limit);
  return poll_hooked(call, those, count, limit < 0 ? milliseconds{-1} : milliseconds{limit},
                     [&] { return next_poll(those, count, limit); });
}

int ppoll(pollfd* those, nfds_t count, const timespec* limit, const sigset_t* mask) {
  const hooked_call call{&hook_options::poll};
  weft::clock::duration time{-1};
  if (!call || mask != nullptr || (limit != nullptr && !read_time(&time, limit)))
    return next_ppoll(those, count, limit, mask);
  return poll_hooked(call, those, count, time, [&] { return next_ppoll(those, count, limit, mask); });
}

// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): names that -D_FORTIFY_SOURCE calls
int __poll_chk(pollfd* those, nfds_t count, int limit, std::size_t room) {
  return count > room / sizeof(pollfd) ? next___poll_chk(those, count, limit, room) : poll(those, count, limit);
}
int __ppoll_chk(pollfd* those, nfds_t count, const timespec* limit, const sigset_t* mask, std::size_t room) {
  return count > room / sizeof(pollfd) ? next___ppoll_chk(those, count, limit, mask, room)
                                       : ppoll(those, count, limit, mask);
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

int select(int count, fd_set* in, fd_set* out, fd_set* other, timeval* limit) {
  const hooked_call call{&hook_options::poll};
  weft::clock::duration time{-1};
  if (!call || count < 0 || (limit != nullptr && !read_time(&time, limit)))
    return next_select(count, in, out, other, limit);
  const weft::clock::time_point until = after(time);
  const auto [is_there, found] = select_hooked(call, count, in, out, other, until);
  if (!is_there) return call.give(next_select(count, in, out, other, limit));
  if (limit != nullptr && until != without_end) {  // Linux stores the time that is left
    const auto left = std::max(weft::clock::duration::zero(), until - weft::current_clock().now());
    const auto whole = std::chrono::floor<std::chrono::seconds>(left);
    const timeval rest{.tv_sec = whole.count(),
                       .tv_usec = std::chrono::floor<std::chrono::microseconds>(left - whole).count()};
    const int kept = errno;
    copy_to_program(limit, &rest, sizeof rest);
    errno = kept;
  }
  return found;
}

int pselect(int count, fd_set* in, fd_set* out, fd_set* other, const timespec* limit, const sigset_t* mask) {
  const hooked_call call{&hook_options::poll};
  weft::clock::duration time{-1};
  if (!call || count < 0 || mask != nullptr || (limit != nullptr && !read_time(&time, limit)))
    return next_pselect(count, in, out, other, limit, mask);
  const auto [is_there, found] = select_hooked(call, count, in, out, other, after(time));
  return is_there ? found : call.give(next_pselect(count, in, out, other, limit, mask));
}

int epoll_wait(int set, epoll_event* into, int most, int limit) {
  const hooked_call call{&hook_options::poll};
  const auto plain = [&] { return next_epoll_wait(set, into, most, limit); };
  if (!call) return plain();
  if (!may_begin(call)) return call.fail(ECANCELED);
  const auto look = [&] { return next_epoll_wait(set, into, most, 0); };
  int found = look();
  if (found != 0 || limit == 0) return call.give(found);
  const waited how = wait_until(call, set, direction::in, after(milliseconds{limit < 0 ? -1 : limit}),
                                [&] { return (found = look()) != 0; });
  if (how == waited::ready || how == waited::timed_out) return call.give(found);
  return how == waited::impossible ? call.give(plain()) : call.fail(error_of(how, 0));
}

int epoll_pwait(int set, epoll_event* into, int most, int limit, const sigset_t* mask) {
  if (mask == nullptr) return epoll_wait(set, into, most, limit);
  return next_epoll_pwait(set, into, most, limit, mask);
}

}  // extern "C"

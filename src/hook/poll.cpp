// poll, select and epoll_wait.
//
// A call for one descriptor and one direction waits as a read does. Any other call makes an epoll set of its descriptors, and
// waits until that set is readable. After each change the C library's poll() or select() is called with a timeout of zero, and
// its answer is what the hook returns.
//
// A call with a signal mask blocks the thread: a signal mask belongs to a thread, not to a fiber.
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
#include <weft/net.hpp>

#include "hook/descriptors.hpp"
#include "hook/next.hpp"
#include "hook/program_memory.hpp"

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

// An epoll set that lives as long as one call.
class temporary_epoll_set {
 public:
  temporary_epoll_set() noexcept : set_{::epoll_create1(EPOLL_CLOEXEC)} {}
  temporary_epoll_set(const temporary_epoll_set&) = delete;
  ~temporary_epoll_set() {
    if (set_ >= 0) ::close(set_);
  }
  /// Adds a descriptor; one that is in the set already is then watched for `all_events()`. False: it can't be watched.
  template <class AllEvents>
  bool add(int number, std::uint32_t events, AllEvents all_events) noexcept {
    epoll_event one{.events = events, .data = {.u64 = 0}};
    if (::epoll_ctl(set_, EPOLL_CTL_ADD, number, &one) == 0) return true;
    // EPERM: epoll can't watch the file, which is always ready. EBADF: poll() or select() reports it.
    if (errno != EEXIST) return errno == EPERM || errno == EBADF;
    one.events = all_events();
    return ::epoll_ctl(set_, EPOLL_CTL_MOD, number, &one) == 0;
  }
  /// Waits until a descriptor is ready, or the time is over.
  waited wait(clock::time_point until) const noexcept {
    try {
      const auto ready = [this] { return net::ready(set_, net::readiness::readable); };
      if (until == without_end) return ended_by(await_unless_stopped(as_result(ready())));
      const clock::duration left = until - current_clock().now();
      if (left <= clock::duration::zero()) return waited::timed_out;
      return ended_by(await_unless_stopped(as_result(timeout(left, ready()))));
    } catch (const std::bad_alloc&) {
      return waited::no_memory;
    }
  }
  explicit operator bool() const noexcept { return set_ >= 0; }

 private:
  int set_;
};

constexpr unsigned in_events = POLLIN | POLLRDNORM | POLLRDHUP, out_events = POLLOUT | POLLWRNORM;

// Waits until look() gives something else than 0. The caller has called look() before, so `those` are known to be readable.
template <class Look, class Plain>
int wait_for_any(const hooked_call& call, const pollfd* those, std::size_t count, clock::time_point until, Look look,
                 Plain plain) noexcept {
  int found = 0;
  waited how = waited::ready;
  if (count == 0) return await_unless_stopped(sleep_until(until)) ? call.give(0) : call.fail(ECANCELED);
  // poll() reports these events even if the program did not ask. Ignored here, since libpq asks for them.
  constexpr unsigned always = POLLERR | POLLHUP | POLLNVAL;
  const unsigned events = count == 1 && those->fd >= 0 ? static_cast<unsigned short>(those->events) & ~always : 0U;
  if (events != 0 && ((events & ~in_events) == 0 || (events & ~out_events) == 0)) {
    how = wait_until(call, those->fd, (events & ~in_events) == 0 ? direction::in : direction::out, until,
                     [&] { return (found = look()) != 0; });
  } else {
    temporary_epoll_set set;
    if (!set) return call.give(plain());
    // All events that the call asks of `number`. No others: the wait would end for those.
    const auto events_of = [&](int number) {
      std::uint32_t all = 0;
      for (const pollfd* one = those; one != those + count; ++one)
        if (one->fd == number) all |= static_cast<unsigned short>(one->events);
      return all;
    };
    for (const pollfd* one = those; one != those + count; ++one)
      if (one->fd >= 0 &&
          !set.add(one->fd, static_cast<unsigned short>(one->events), [&] { return events_of(one->fd); }))
        return call.give(plain());
    while (how == waited::ready && (found = look()) == 0) how = set.wait(until);
    if (how == waited::timed_out) found = look();  // one may have become ready since the last look
  }
  switch (how) {
    case waited::ready:
    case waited::timed_out: return call.give(found);
    case waited::impossible: return call.give(plain());
    case waited::stopped:
    case waited::closed:
    case waited::no_memory: break;
  }
  return call.fail(error_of(how, 0));
}

template <class Plain>
int poll_hooked(const hooked_call& call, pollfd* those, nfds_t count, clock::duration limit, Plain plain) noexcept {
  if (!may_begin(call)) return call.fail(ECANCELED);
  const auto look = [&] { return next_poll(those, count, 0); };
  const int found = look();
  if (found != 0 || limit == clock::duration::zero()) return call.give(found);
  return wait_for_any(call, those, count, after(limit), look, plain);
}

// ---- select -----------------------------------------------------------------------------------------------------------------

// Copies of a select's sets, of the size that `count` implies.
class copied_sets {
 public:
  copied_sets(int count, const fd_set* in, const fd_set* out, const fd_set* other) noexcept
      : count_{count}, size_{(static_cast<std::size_t>(count) + 63) / 64 * 8} {
    const std::array<const fd_set*, 3> those{in, out, other};
    for (std::size_t i = 0; i != 3; ++i) {
      if (those[i] == nullptr) continue;
      bits_[i].reset(new (std::nothrow) unsigned char[size_]);
      // select() reads whole words, so a set has memory up to the end of its last word.
      if (!bits_[i] || !copy_from_program(bits_[i].get(), those[i], size_)) is_whole_ = false;
    }
  }
  explicit operator bool() const noexcept { return is_whole_; }

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
  bool is_whole_ = true;
};

// The result of a select in a fiber. False in `is_there`: the plain call must be made, which may block.
struct selected {
  bool is_there = false;
  int found = -1;
};
selected select_hooked(const hooked_call& call, int count, fd_set* in, fd_set* out, fd_set* other,
                       clock::time_point until) noexcept {
  if (!may_begin(call)) return {true, call.fail(ECANCELED)};
  const copied_sets sets{count, in, out, other};
  std::unique_ptr<pollfd[]> those;
  const int numbers = sets ? sets.to_pollfds(those) : -1;
  if (numbers < 0) return {};
  // Waits with poll() for the same descriptors, since select() overwrites its sets even when nothing is ready.
  bool blocks = false;
  const auto look = [&] { return next_poll(those.get(), static_cast<nfds_t>(numbers), 0); };
  int ready = look();
  if (ready == 0)
    ready = wait_for_any(call, those.get(), static_cast<std::size_t>(numbers), until, look, [&] {
      blocks = true;
      return 0;
    });
  if (blocks) return {};
  if (ready < 0) return {true, ready};
  timeval none{0, 0};
  const int found = next_select(count, in, out, other, &none);
  if (found == 0 && ready > 0) return {};  // poll() has reported an event that is in no set
  return {true, call.give(found)};
}

}  // namespace

extern const char hooks_poll;
const char hooks_poll = 0;  // makes the linker include this file; see all_sources in waiting.cpp

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
  timespec time{};
  if (!call || mask != nullptr ||
      (limit != nullptr && (!copy_from_program(&time, limit, sizeof time) || time.tv_sec < 0 || time.tv_nsec < 0 ||
                            time.tv_nsec >= 1'000'000'000 || time.tv_sec > INT_MAX)))
    return next_ppoll(those, count, limit, mask);
  const weft::clock::duration d = limit == nullptr
                                      ? weft::clock::duration{-1}
                                      : std::chrono::seconds{time.tv_sec} + std::chrono::nanoseconds{time.tv_nsec};
  return poll_hooked(call, those, count, d, [&] { return next_ppoll(those, count, limit, mask); });
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
  timeval time{};
  if (!call || count < 0 ||
      (limit != nullptr && (!copy_from_program(&time, limit, sizeof time) || time.tv_sec < 0 || time.tv_usec < 0 ||
                            time.tv_sec > INT_MAX || time.tv_usec > INT_MAX)))
    return next_select(count, in, out, other, limit);
  const weft::clock::time_point until =
      limit == nullptr ? without_end
                       : after(std::chrono::seconds{time.tv_sec} + std::chrono::microseconds{time.tv_usec});
  const auto [is_there, found] = select_hooked(call, count, in, out, other, until);
  if (!is_there) return next_select(count, in, out, other, limit);
  if (limit != nullptr) {  // Linux stores the time that is left
    const auto left = std::max(weft::clock::duration::zero(), until - weft::current_clock().now());
    const auto whole = std::chrono::floor<std::chrono::seconds>(left);
    time = {.tv_sec = whole.count(), .tv_usec = std::chrono::floor<std::chrono::microseconds>(left - whole).count()};
    const int kept = errno;
    copy_to_program(limit, &time, sizeof time);
    errno = kept;
  }
  return found;
}

int pselect(int count, fd_set* in, fd_set* out, fd_set* other, const timespec* limit, const sigset_t* mask) {
  const hooked_call call{&hook_options::poll};
  timespec time{};
  if (!call || count < 0 || mask != nullptr ||
      (limit != nullptr && (!copy_from_program(&time, limit, sizeof time) || time.tv_sec < 0 || time.tv_nsec < 0 ||
                            time.tv_nsec >= 1'000'000'000 || time.tv_sec > INT_MAX)))
    return next_pselect(count, in, out, other, limit, mask);
  const weft::clock::time_point until =
      limit == nullptr ? without_end
                       : after(std::chrono::seconds{time.tv_sec} + std::chrono::nanoseconds{time.tv_nsec});
  const auto [is_there, found] = select_hooked(call, count, in, out, other, until);
  return is_there ? found : next_pselect(count, in, out, other, limit, mask);
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

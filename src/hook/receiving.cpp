// The calls that receive only on sockets.
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include "hook/descriptors.hpp"
#include "hook/next.hpp"
#include "hook/program_memory.hpp"

extern "C" {
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
ssize_t __recv_chk(int number, void* into, std::size_t size, std::size_t room, int flags);
ssize_t __recvfrom_chk(int number, void* into, std::size_t size, std::size_t room, int flags, sockaddr* from,
                       socklen_t* from_size);
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)
}

namespace weft::detail {
namespace {

WEFT_HOOK_NEXT(recvfrom);
WEFT_HOOK_NEXT(recvmmsg);
WEFT_HOOK_NEXT(__recv_chk);
WEFT_HOOK_NEXT(__recvfrom_chk);

using weft::hook_options;

// Flags with which a receive never waits.
constexpr int never_waits = MSG_DONTWAIT | MSG_ERRQUEUE | MSG_OOB;

// Whether a receive with MSG_PEEK and MSG_WAITALL waits for all bytes: TCP does, Unix sockets don't.
bool peek_waits_for_all(int number) noexcept {
  return socket_option_of(number, SO_TYPE) == SOCK_STREAM && socket_option_of(number, SO_DOMAIN) != AF_UNIX;
}

// Whether a stream has bytes that a receive takes before it comes to an error.
bool has_bytes(int number) noexcept {
  int size = 0;
  return ::ioctl(number, FIONREAD, &size) == 0 && size > 0;
}

// A receive ends before an urgent byte (MSG_OOB) that comes later than the first byte, whatever it waits for: whether that comes
// next, or one that is not read yet is among what has come. Where both come between a look and the call behind it, the call goes on
// behind it. Nothing tells where a peek has ended: before an urgent byte that was read, it waits for more, and from an offset
// (SO_PEEK_OFF) it goes on beyond one.
bool is_at_urgent_byte(int number) noexcept {
  int is_at = 0;
  return ::ioctl(number, SIOCATMARK, &is_at) == 0 && is_at != 0;
}
bool has_urgent_byte(int number) noexcept {
  pollfd one{.fd = number, .events = POLLPRI, .revents = 0};
  return next_poll(&one, 1, 0) == 1 && (one.revents & POLLPRI) != 0;
}

timespec time_left(clock::time_point until) noexcept {
  const clock::duration left = std::max(clock::duration::zero(), until - current_clock().now());
  const auto seconds = std::chrono::floor<std::chrono::seconds>(left);
  return {.tv_sec = seconds.count(), .tv_nsec = std::chrono::nanoseconds{left - seconds}.count()};
}

// attempt(done) and plain(done) receive what comes after the first `done` bytes; only plain() may block.
template <class Attempt, class Plain>
ssize_t receive_hooked(const hooked_call& call, int number, std::size_t size, int flags, Attempt attempt,
                       Plain plain) noexcept {
  if ((flags & never_waits) != 0) return call.give(plain(0));
  if (!may_begin(call)) return is_non_blocking(number) ? call.give(plain(0)) : call.fail(ECANCELED);
  const bool waits_for_all = (flags & MSG_WAITALL) != 0;
  std::optional<clock::time_point> until;
  const bool peeks = (flags & MSG_PEEK) != 0;
  // With SO_PEEK_OFF each peek begins behind what the last one has seen, so parts add up as those that are taken.
  const bool moves_on =
      peeks && waits_for_all && socket_option_of(number, SO_PEEK_OFF) >= 0 && peek_waits_for_all(number);
  if (peeks && !moves_on) {  // a peek takes nothing, so each attempt starts again at the first byte
    ssize_t seen = 0;        // by an attempt that wants more
    const auto look = [&] {
      const ssize_t got = attempt(0);
      const bool wants_more = waits_for_all && got > 0 && static_cast<std::size_t>(got) < size;
      seen = 0;
      if (!wants_more || !peek_waits_for_all(number) || (has_urgent_byte(number) && !is_at_urgent_byte(number)))
        return got;
      seen = got;
      errno = EAGAIN;
      return ssize_t{-1};
    };
    const ssize_t got = transfer(call, number, direction::in, until, look, [&] { return plain(0); });
    return got < 0 && seen > 0 ? call.give(seen) : got;
  }
  std::size_t done = 0;
  const auto must_end = [&] {
    return done != 0 && (is_at_urgent_byte(number) || (has_error_for_next_call(number) && !has_bytes(number)));
  };
  for (;;) {
    const ssize_t got = transfer(
        call, number, direction::in, until, [&] { return must_end() ? ssize_t{0} : attempt(done); },
        [&] { return must_end() ? ssize_t{0} : plain(done); });
    if (got < 0) return done != 0 ? call.give(static_cast<ssize_t>(done)) : got;
    done += static_cast<std::size_t>(got);
    if (!waits_for_all || got == 0 || done >= size || socket_option_of(number, SO_TYPE) != SOCK_STREAM)
      return call.give(static_cast<ssize_t>(done));
  }
}

}  // namespace

extern const char hooks_receiving;
const char hooks_receiving = 0;  // makes the linker include this file; see all_sources in fiber_hooks.cpp

}  // namespace weft::detail

using namespace weft::detail;  // NOLINT(google-build-using-namespace): the hooks below belong to weft

extern "C" {

ssize_t recv(int number, void* into, std::size_t size, int flags) {
  const hooked_call call{&hook_options::sockets};
  if (!call) return next_recv(number, into, size, flags);
  const auto receive = [&](std::size_t done, int how) {
    return next_recv(number, static_cast<char*>(into) + done, size - done, how);
  };
  return receive_hooked(
      call, number, size, flags, [&](std::size_t done) { return receive(done, flags | MSG_DONTWAIT); },
      [&](std::size_t done) { return receive(done, flags); });
}

ssize_t recvfrom(int number, void* into, std::size_t size, int flags, sockaddr* from, socklen_t* from_size) {
  const hooked_call call{&hook_options::sockets};
  if (!call) return next_recvfrom(number, into, size, flags, from, from_size);
  const auto receive = [&](std::size_t done, int how) {
    return next_recvfrom(number, static_cast<char*>(into) + done, size - done, how, from, from_size);
  };
  return receive_hooked(
      call, number, size, flags, [&](std::size_t done) { return receive(done, flags | MSG_DONTWAIT); },
      [&](std::size_t done) { return receive(done, flags); });
}

// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): names that -D_FORTIFY_SOURCE calls
ssize_t __recv_chk(int number, void* into, std::size_t size, std::size_t room, int flags) {
  return size > room ? next___recv_chk(number, into, size, room, flags) : recv(number, into, size, flags);
}
ssize_t __recvfrom_chk(int number, void* into, std::size_t size, std::size_t room, int flags, sockaddr* from,
                       socklen_t* from_size) {
  return size > room ? next___recvfrom_chk(number, into, size, room, flags, from, from_size)
                     : recvfrom(number, into, size, flags, from, from_size);
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

// MSG_WAITALL does not make this call wait for all bytes: it may give less.
ssize_t recvmsg(int number, msghdr* message, int flags) {
  const hooked_call call{&hook_options::sockets};
  if (!call) return next_recvmsg(number, message, flags);
  return receive_hooked(
      call, number, 0, flags, [&](std::size_t) { return next_recvmsg(number, message, flags | MSG_DONTWAIT); },
      [&](std::size_t) { return next_recvmsg(number, message, flags); });
}

// As in the system, a limit ends the call only after a message: the wait for one ignores it.
int recvmmsg(int number, mmsghdr* messages, unsigned count, int flags, timespec* limit) {
  const hooked_call call{&hook_options::sockets};
  weft::clock::duration time{};
  if (!call || count == 0 || (limit != nullptr && !read_time(&time, limit)))
    return next_recvmmsg(number, messages, count, flags, limit);
  const weft::clock::time_point until = limit != nullptr ? after(time) : without_end;
  timespec left{};  // of the limit, as the system stores it after each message
  unsigned done = 0;
  const auto receive = [&](int how) {
    if (done != 0 && has_error_for_next_call(number)) return ssize_t{0};
    if (limit != nullptr) left = time_left(until);
    return ssize_t{next_recvmmsg(number, messages + done, count - done, how, limit != nullptr ? &left : nullptr)};
  };
  const auto waits_for_more = [&] {
    return done < count && (flags & (MSG_WAITFORONE | never_waits)) == 0 &&
           (limit == nullptr || left.tv_sec != 0 || left.tv_nsec != 0);
  };
  ssize_t got = 0;
  do {
    got = receive_hooked(
        call, number, 0, flags & ~MSG_WAITALL, [&](std::size_t) { return receive(flags | MSG_DONTWAIT); },
        [&](std::size_t) { return receive(flags); });
    if (got > 0) done += static_cast<unsigned>(got);
  } while (got > 0 && waits_for_more());
  if (done == 0) return static_cast<int>(got);
  if (limit != nullptr) copy_to_program(limit, &left, sizeof left);
  return call.give(static_cast<int>(done));
}

}  // extern "C"

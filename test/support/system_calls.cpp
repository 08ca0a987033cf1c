#include "support/system_calls.hpp"

#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstring>
#include <utility>

// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): the linker's names
extern "C" {
int __real_bind(int number, const sockaddr* to, socklen_t size);
int __real_listen(int number, int backlog);
ssize_t __real_sendmsg(int number, const msghdr* message, int flags);
ssize_t __real_sendfile(int number, int from, off_t* offset, std::size_t size);
ssize_t __real_pread(int number, void* into, std::size_t size, off_t offset);
ssize_t __real_recvfrom(int number, void* into, std::size_t size, int flags, sockaddr* of, socklen_t* length);
ssize_t __real_recvmsg(int number, msghdr* message, int flags);
int __real_recvmmsg(int number, mmsghdr* those, unsigned count, int flags, timespec* until);
int __real_sendmmsg(int number, mmsghdr* those, unsigned count, int flags);
ssize_t __real_sendto(int number, const void* data, std::size_t size, int flags, const sockaddr* to, socklen_t length);
int __real_poll(pollfd* those, nfds_t count, int milliseconds);
int __real_fcntl(int number, int what, ...);
int __real_epoll_ctl(int set, int what, int number, epoll_event* event);
int __real_eventfd(unsigned count, int flags);
}

namespace test {
namespace {

int outcome_of(call which, int number) noexcept { return injection::outcome_of(which, number); }

// Has the system report what there is anew, as if it had only come now.
void report_anew(int number, bool in) noexcept {
  const int saved = errno;
  int value = 1;
  socklen_t size = sizeof value;
  if (in) {
    ::setsockopt(number, SOL_SOCKET, SO_RCVLOWAT, &value, size);
  } else if (::getsockopt(number, SOL_SOCKET, SO_SNDBUF, &value, &size) == 0) {
    value /= 2;  // the system doubles it
    ::setsockopt(number, SOL_SOCKET, SO_SNDBUF, &value, size);
  }
  errno = saved;
}

ssize_t moves_nothing(int error, int number, bool in) noexcept {
  if (error == EAGAIN) report_anew(number, in);
  if (error == EAGAIN && in) injection::do_meanwhile();
  return fails_with(error);
}

constexpr const char* names[] = {"none",     "socket", "bind", "listen",   "connect", "accept4",   "recv",
                                 "recvfrom", "send",   "lend", "sendmsg",  "recvmsg", "recvmmsg",  "sendmmsg",
                                 "sendfile", "pread",  "poll", "shutdown", "fcntl",   "epoll_ctl", "eventfd"};

}  // namespace

const char* name_of(call one) noexcept { return names[static_cast<std::size_t>(one)]; }

}  // namespace test

using test::call;
using test::fails_with;
using test::moves_nothing;
using test::outcome_of;

extern "C" {

int __wrap_socket(int family, int type, int protocol) {
  const int result = outcome_of(call::socket, -1);
  return result != 0 ? fails_with(result) : test::real::__real_socket(family, type, protocol);
}

int __wrap_bind(int number, const sockaddr* to, socklen_t size) {
  const int result = outcome_of(call::bind, number);
  return result != 0 ? fails_with(result) : __real_bind(number, to, size);
}

int __wrap_listen(int number, int backlog) {
  const int result = outcome_of(call::listen, number);
  return result != 0 ? fails_with(result) : __real_listen(number, backlog);
}

// One that goes on, or seems to, has begun. The first is no second one that says so.
int __wrap_connect(int number, const sockaddr* to, socklen_t size) {
  const int result = outcome_of(call::connect, number);
  if (result == 0) return test::real::__real_connect(number, to, size);
  if (result == EINTR || result == EALREADY) {
    const int came = test::real::__real_connect(number, to, size);
    if (result == EALREADY && came != 0 && errno == EINPROGRESS) return came;
    test::report_anew(number, false);
  }
  return fails_with(result);
}

// EAGAIN of a connection that is there is a lie. It is told only where the call before this one has not said EAGAIN, be it true or
// not: for there is another try then. A lie in that other try would have the connection waited for, which may have come between
// the two, and nothing reports it once more.
int __wrap_accept4(int number, sockaddr* of, socklen_t* size, int flags) {
  static std::atomic<bool> said_eagain{false};
  const int result = outcome_of(call::accept4, number);
  pollfd one{.fd = number, .events = POLLIN, .revents = 0};
  const bool is_real = result == 0 || (result == EAGAIN && said_eagain && __real_poll(&one, 1, 0) == 1);
  const int made = is_real ? test::real::__real_accept4(number, of, size, flags) : fails_with(result);
  said_eagain = made < 0 && errno == EAGAIN;
  return made;
}

ssize_t __wrap_recv(int number, void* into, std::size_t size, int flags) {
  const int result = outcome_of(call::recv, number);
  if (result > 0) return moves_nothing(result, number, true);
  if (result == 0) return test::real::__real_recv(number, into, size, flags);
  const ssize_t got = test::real::__real_recv(number, into, std::min<std::size_t>(size, 1), flags);
  test::report_anew(number, true);
  return got;
}

// Of datagrams, of which nothing can be reported anew: a rest that was cut is gone.
ssize_t __wrap_recvfrom(int number, void* into, std::size_t size, int flags, sockaddr* of, socklen_t* length) {
  const int result = outcome_of(call::recvfrom, number);
  if (result > 0) return fails_with(result);
  return __real_recvfrom(number, into, result == 0 ? size : std::min<std::size_t>(size, 1), flags, of, length);
}

ssize_t __wrap_send(int number, const void* data, std::size_t size, int flags) {
  const int result = outcome_of((flags & MSG_ZEROCOPY) != 0 ? call::lend : call::send, number);
  if (result > 0) return moves_nothing(result, number, false);
  return test::real::__real_send(number, data, result == 0 ? size : std::min<std::size_t>(size, 1), flags);
}

ssize_t __wrap_sendmsg(int number, const msghdr* message, int flags) {
  const int result = outcome_of(call::sendmsg, number);
  if (result > 0) return moves_nothing(result, number, false);
  if (result == 0) return __real_sendmsg(number, message, flags);
  for (std::size_t i = 0; i != message->msg_iovlen; ++i)
    if (message->msg_iov[i].iov_len != 0)
      return test::real::__real_send(number, message->msg_iov[i].iov_base, 1, flags);
  return __real_sendmsg(number, message, flags);
}

ssize_t __wrap_sendfile(int number, int from, off_t* offset, std::size_t size) {
  const int result = outcome_of(call::sendfile, number);
  if (result > 0) return moves_nothing(result, number, false);
  return __real_sendfile(number, from, offset, result == 0 ? size : std::min<std::size_t>(size, 1));
}

ssize_t __wrap_pread(int number, void* into, std::size_t size, off_t offset) {
  const int result = outcome_of(call::pread, number);
  if (result > 0) return fails_with(result);
  return __real_pread(number, into, result == 0 ? size : std::min<std::size_t>(size, 1), offset);
}

// One byte: of a stream, as recv(); of datagrams there is no such thing.
ssize_t __wrap_recvmsg(int number, msghdr* message, int flags) {
  if ((flags & MSG_ERRQUEUE) != 0) return __real_recvmsg(number, message, flags);  // a report, which comes once
  const int result = outcome_of(call::recvmsg, number);
  if (result > 0) return moves_nothing(result, number, true);
  if (result == 0 || message->msg_iovlen == 0) return __real_recvmsg(number, message, flags);
  iovec one = message->msg_iov[0];
  one.iov_len = std::min<std::size_t>(one.iov_len, 1);
  iovec* const all = std::exchange(message->msg_iov, &one);
  const std::size_t count = std::exchange(message->msg_iovlen, 1);
  const ssize_t got = __real_recvmsg(number, message, flags);
  message->msg_iov = all;
  message->msg_iovlen = count;
  test::report_anew(number, true);
  return got;
}

int __wrap_recvmmsg(int number, mmsghdr* those, unsigned count, int flags, timespec* until) {
  const int result = outcome_of(call::recvmmsg, number);
  if (result > 0) return static_cast<int>(moves_nothing(result, number, true));
  return __real_recvmmsg(number, those, count, flags, until);
}

// Counted as sendmsg(); there is no half of a datagram.
ssize_t __wrap_sendto(int number, const void* data, std::size_t size, int flags, const sockaddr* to, socklen_t length) {
  const int result = outcome_of(call::sendmsg, number);
  if (result > 0) return moves_nothing(result, number, false);
  return __real_sendto(number, data, size, flags, to, length);
}

int __wrap_sendmmsg(int number, mmsghdr* those, unsigned count, int flags) {
  const int result = outcome_of(call::sendmmsg, number);
  if (result > 0) return static_cast<int>(moves_nothing(result, number, false));
  return __real_sendmmsg(number, those, result == 0 ? count : 1, flags);
}

int __wrap_poll(pollfd* those, nfds_t count, int milliseconds) {
  const int result = outcome_of(call::poll, count == 1 ? those->fd : -1);
  return result != 0 ? fails_with(result) : __real_poll(those, count, milliseconds);
}

int __wrap_shutdown(int number, int how) {
  const int result = outcome_of(call::shutdown, number);
  return result != 0 ? fails_with(result) : test::real::__real_shutdown(number, how);
}

int __wrap_fcntl(int number, int what, ...) {
  va_list rest;
  va_start(rest, what);
  const long argument = va_arg(rest, long);
  va_end(rest);
  const int result = outcome_of(call::fcntl, number);
  return result != 0 ? fails_with(result) : __real_fcntl(number, what, argument);
}

int __wrap_epoll_ctl(int set, int what, int number, epoll_event* event) {
  const int result = what == EPOLL_CTL_ADD ? outcome_of(call::epoll_ctl, number) : 0;
  return result != 0 ? fails_with(result) : __real_epoll_ctl(set, what, number, event);
}

int __wrap_eventfd(unsigned count, int flags) {
  const int result = outcome_of(call::eventfd, -1);
  return result != 0 ? fails_with(result) : __real_eventfd(count, flags);
}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

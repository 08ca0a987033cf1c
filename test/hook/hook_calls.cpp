#include "hook/hook_calls.hpp"

#include <dlfcn.h>
#include <netdb.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <functional>
#include <utility>

namespace test {
namespace {

constexpr const char* names[] = {
    "none",       "recv",       "recvfrom",      "recvmsg",    "recvmmsg",  "send",        "sendto",       "sendmsg",
    "sendmmsg",   "read",       "write",         "pread",      "pwrite",    "pread64",     "pwrite64",     "readv",
    "writev",     "preadv",     "pwritev",       "preadv64",   "pwritev64", "preadv2_now", "pwritev2_now", "preadv2",
    "pwritev2",   "preadv64v2", "pwritev64v2",   "connect",    "accept",    "accept4",     "poll",         "select",
    "epoll_wait", "epoll_ctl",  "epoll_create1", "getaddrinfo"};

std::array<std::atomic<int>, 4> concerned{};  // one more than the number
std::atomic<int> lost{0};

std::atomic<below> watched{below::none};
std::function<void()> does_before;
std::atomic<bool> refuses_nowait{false};

int outcome(below which) noexcept {
  if (watched == which) does_before();
  return injection_below::outcome_of(which);
}
// A pipe by whatever number: a hook may open one of its own.
bool is_same_pipe(int number, int other) noexcept {
  const int kept = errno;
  struct stat its, others;
  const bool are_there = ::fstat(number, &its) == 0 && ::fstat(other, &others) == 0;
  errno = kept;
  return are_there && S_ISFIFO(its.st_mode) && S_ISFIFO(others.st_mode) && its.st_ino == others.st_ino;
}
bool is_concerned(int number) noexcept {
  const auto is_it = [number](const std::atomic<int>& one) {
    return one != 0 && (one == number + 1 || is_same_pipe(number, one - 1));
  };
  return std::any_of(concerned.begin(), concerned.end(), is_it);
}
int outcome(below which, int number) noexcept { return is_concerned(number) ? outcome(which) : 0; }
int outcome_with(int flags, int number, below at_once, below otherwise) noexcept {
  if ((flags & RWF_NOWAIT) == 0) return outcome(otherwise, number);
  return refuses_nowait && is_concerned(number) ? EOPNOTSUPP : outcome(at_once, number);
}

// Has the system report what there is anew, as if it had only come now: of TCP, and not of others.
void report_anew(int number) noexcept {
  const int saved = errno;
  pollfd room{number, POLLOUT, 0};
  ::syscall(SYS_poll, &room, 1,
            0);  // where there is none, that has the system report it, as a send does that finds none
  int value = 1;
  socklen_t size = sizeof value;
  ::setsockopt(number, SOL_SOCKET, SO_RCVLOWAT, &value, size);
  if (::getsockopt(number, SOL_SOCKET, SO_SNDBUF, &value, &size) == 0) {
    value /= 2;  // the system doubles it
    ::setsockopt(number, SOL_SOCKET, SO_SNDBUF, &value, size);
  }
  errno = saved;
}
int moves_nothing(int error, int number) noexcept {
  if (error == EAGAIN) report_anew(number);
  return fails_with(error);
}
int takes_away(int error, int number) noexcept {
  if (error != EAGAIN) return fails_with(error);
  if (const long taken = ::syscall(SYS_accept4, number, nullptr, nullptr, 0); taken >= 0) {
    ++lost;  // before its peer hears of it
    ::syscall(SYS_close, taken);
  }
  return fails_with(error);
}

std::size_t size_with(int result, std::size_t size) noexcept {
  return result == one_byte ? std::min<std::size_t>(size, 1) : size;
}

}  // namespace

const char* name_of(below one) noexcept { return names[static_cast<std::size_t>(one)]; }

void concern(std::initializer_list<int> numbers) noexcept {
  for (std::atomic<int>& one : concerned) one = 0;
  std::size_t count = 0;
  for (const int number : numbers) concerned[count++] = number + 1;
}
watch_below::watch_below(below which, std::function<void()> does) {
  does_before = std::move(does);
  watched = which;
}
void refuse_nowait(bool does) noexcept { refuses_nowait = does; }
watch_below::~watch_below() { watched = below::none; }
int lost_connections() noexcept { return lost.exchange(0); }

}  // namespace test

using test::below;
using test::fails_with;
using test::moves_nothing;
using test::outcome;
using test::outcome_with;
using test::size_with;

// What a hook calls: a sanitizer's function, where there is one, else what comes after the program.
#define NEXT(NAME)                                                                    \
  extern "C" [[gnu::weak]] decltype(::NAME) __real___interceptor_##NAME;              \
  namespace {                                                                         \
  auto next_of_##NAME() noexcept -> decltype(&::NAME) {                               \
    if (&__real___interceptor_##NAME != nullptr) return &__real___interceptor_##NAME; \
    static std::atomic<void*> found{nullptr};                                         \
    if (found == nullptr) found = ::dlsym(RTLD_NEXT, #NAME);                          \
    return reinterpret_cast<decltype(&::NAME)>(found.load());                         \
  }                                                                                   \
  }

// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): the linker's names
NEXT(recv)
NEXT(recvfrom)
NEXT(recvmsg)
NEXT(recvmmsg)
NEXT(send)
NEXT(sendto)
NEXT(sendmsg)
NEXT(sendmmsg)
NEXT(read)
NEXT(write)
NEXT(pread)
NEXT(pwrite)
NEXT(pread64)
NEXT(pwrite64)
NEXT(readv)
NEXT(writev)
NEXT(preadv)
NEXT(pwritev)
NEXT(preadv64)
NEXT(pwritev64)
NEXT(preadv2)
NEXT(pwritev2)
NEXT(preadv64v2)
NEXT(pwritev64v2)
NEXT(connect)
NEXT(accept)
NEXT(accept4)
NEXT(poll)
NEXT(select)
NEXT(epoll_wait)
NEXT(getaddrinfo)

extern "C" {

int __real_epoll_ctl(int set, int what, int number, epoll_event* event);
int __real_epoll_create1(int flags);

ssize_t __wrap___interceptor_recv(int number, void* into, std::size_t size, int flags) {
  const int result = outcome(below::recv, number);
  return result > 0 ? moves_nothing(result, number) : next_of_recv()(number, into, size_with(result, size), flags);
}
ssize_t __wrap___interceptor_recvfrom(int number, void* into, std::size_t size, int flags, sockaddr* of,
                                      socklen_t* length) {
  const int result = outcome(below::recvfrom, number);
  return result > 0 ? moves_nothing(result, number)
                    : next_of_recvfrom()(number, into, size_with(result, size), flags, of, length);
}
ssize_t __wrap___interceptor_recvmsg(int number, msghdr* message, int flags) {
  const int result = outcome(below::recvmsg, number);
  return result > 0 ? moves_nothing(result, number) : next_of_recvmsg()(number, message, flags);
}
int __wrap___interceptor_recvmmsg(int number, mmsghdr* those, unsigned count, int flags, timespec* until) {
  const int result = outcome(below::recvmmsg, number);
  return result > 0 ? moves_nothing(result, number) : next_of_recvmmsg()(number, those, count, flags, until);
}
ssize_t __wrap___interceptor_send(int number, const void* data, std::size_t size, int flags) {
  const int result = outcome(below::send, number);
  return result > 0 ? moves_nothing(result, number) : next_of_send()(number, data, size_with(result, size), flags);
}
ssize_t __wrap___interceptor_sendto(int number, const void* data, std::size_t size, int flags, const sockaddr* to,
                                    socklen_t length) {
  const int result = outcome(below::sendto, number);
  return result > 0 ? moves_nothing(result, number)
                    : next_of_sendto()(number, data, size_with(result, size), flags, to, length);
}
ssize_t __wrap___interceptor_sendmsg(int number, const msghdr* message, int flags) {
  const int result = outcome(below::sendmsg, number);
  if (result > 0) return moves_nothing(result, number);
  if (result == 0) return next_of_sendmsg()(number, message, flags);
  msghdr first = *message;
  iovec part = message->msg_iov[0];
  part.iov_len = size_with(result, part.iov_len);
  first.msg_iov = &part;
  first.msg_iovlen = 1;
  return next_of_sendmsg()(number, &first, flags);
}
int __wrap___interceptor_sendmmsg(int number, mmsghdr* those, unsigned count, int flags) {
  const int result = outcome(below::sendmmsg, number);
  return result > 0 ? moves_nothing(result, number) : next_of_sendmmsg()(number, those, result == 0 ? count : 1, flags);
}
ssize_t __wrap___interceptor_read(int number, void* into, std::size_t size) {
  const int result = outcome(below::read, number);
  return result > 0 ? fails_with(result) : next_of_read()(number, into, size_with(result, size));
}
ssize_t __wrap___interceptor_write(int number, const void* data, std::size_t size) {
  const int result = outcome(below::write, number);
  return result > 0 ? fails_with(result) : next_of_write()(number, data, size_with(result, size));
}
ssize_t __wrap___interceptor_pread(int number, void* into, std::size_t size, off_t at) {
  const int result = outcome(below::pread, number);
  return result > 0 ? fails_with(result) : next_of_pread()(number, into, size_with(result, size), at);
}
ssize_t __wrap___interceptor_pwrite(int number, const void* data, std::size_t size, off_t at) {
  const int result = outcome(below::pwrite, number);
  return result > 0 ? fails_with(result) : next_of_pwrite()(number, data, size_with(result, size), at);
}
ssize_t __wrap___interceptor_pread64(int number, void* into, std::size_t size, off64_t at) {
  const int result = outcome(below::pread64, number);
  return result > 0 ? fails_with(result) : next_of_pread64()(number, into, size_with(result, size), at);
}
ssize_t __wrap___interceptor_pwrite64(int number, const void* data, std::size_t size, off64_t at) {
  const int result = outcome(below::pwrite64, number);
  return result > 0 ? fails_with(result) : next_of_pwrite64()(number, data, size_with(result, size), at);
}
#define OF_PARTS(NAME, GIVEN, ...)                                                         \
  ssize_t __wrap___interceptor_##NAME GIVEN {                                              \
    const int result = outcome(below::NAME, number);                                       \
    return result > 0 ? fails_with(result) : next_of_##NAME()(number, parts, __VA_ARGS__); \
  }
#define WITH_FLAGS(NAME, AT_ONCE, OFFSET)                                                                \
  ssize_t __wrap___interceptor_##NAME(int number, const iovec* parts, int count, OFFSET at, int flags) { \
    const int result = outcome_with(flags, number, below::AT_ONCE, below::by_##NAME);                    \
    return result > 0 ? fails_with(result) : next_of_##NAME()(number, parts, count, at, flags);          \
  }
OF_PARTS(readv, (int number, const iovec* parts, int count), count)
OF_PARTS(writev, (int number, const iovec* parts, int count), count)
OF_PARTS(preadv, (int number, const iovec* parts, int count, off_t at), count, at)
OF_PARTS(pwritev, (int number, const iovec* parts, int count, off_t at), count, at)
OF_PARTS(preadv64, (int number, const iovec* parts, int count, off64_t at), count, at)
OF_PARTS(pwritev64, (int number, const iovec* parts, int count, off64_t at), count, at)
WITH_FLAGS(preadv2, preadv2, off_t)
WITH_FLAGS(pwritev2, pwritev2, off_t)
WITH_FLAGS(preadv64v2, preadv2, off64_t)
WITH_FLAGS(pwritev64v2, pwritev2, off64_t)
// EINTR comes after the call has been made.
int __wrap___interceptor_connect(int number, const sockaddr* to, socklen_t size) {
  const int result = outcome(below::connect, number);
  if (result == EINTR) next_of_connect()(number, to, size);
  return result > 0 ? fails_with(result) : next_of_connect()(number, to, size);
}
int __wrap___interceptor_accept(int number, sockaddr* of, socklen_t* size) {
  const int result = outcome(below::accept, number);
  return result > 0 ? test::takes_away(result, number) : next_of_accept()(number, of, size);
}
int __wrap___interceptor_accept4(int number, sockaddr* of, socklen_t* size, int flags) {
  const int result = outcome(below::accept4, number);
  return result > 0 ? test::takes_away(result, number) : next_of_accept4()(number, of, size, flags);
}
int __wrap___interceptor_poll(pollfd* those, nfds_t count, int limit) {
  const int result = count == 0 ? 0 : outcome(below::poll, those->fd);
  return result > 0 ? fails_with(result) : next_of_poll()(those, count, limit);
}
int __wrap___interceptor_select(int count, fd_set* in, fd_set* out, fd_set* other, timeval* limit) {
  const int result = outcome(below::select, count - 1);
  return result > 0 ? fails_with(result) : next_of_select()(count, in, out, other, limit);
}
int __wrap___interceptor_epoll_wait(int set, epoll_event* into, int most, int limit) {
  const int result = outcome(below::epoll_wait, set);
  return result > 0 ? fails_with(result) : next_of_epoll_wait()(set, into, most, limit);
}

int __wrap_epoll_ctl(int set, int what, int number, epoll_event* event) {
  const int result = what == EPOLL_CTL_ADD ? outcome(below::epoll_ctl, number) : 0;
  return result > 0 ? fails_with(result) : __real_epoll_ctl(set, what, number, event);
}
int __wrap_epoll_create1(int flags) {
  const int result = outcome(below::epoll_create1);
  return result > 0 ? fails_with(result) : __real_epoll_create1(flags);
}
// Not the hook's own look whether the name is a number, which asks nobody.
int __wrap___interceptor_getaddrinfo(const char* host, const char* service, const addrinfo* hints, addrinfo** into) {
  const bool asks = hints == nullptr || (hints->ai_flags & AI_NUMERICHOST) == 0;
  if (const int result = asks ? outcome(below::getaddrinfo) : 0; result > 0) return fails_with(result), EAI_SYSTEM;
  return next_of_getaddrinfo()(host, service, hints, into);
}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

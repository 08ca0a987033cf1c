// read, readv, write and writev on every kind of file; close, dup2 and dup3, which end the waits for a descriptor.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdint>
#include <cstdio>

#include "hook/descriptors.hpp"
#include "hook/next.hpp"
#include "hook/parts.hpp"
#include "hook/program_memory.hpp"

extern "C" {
// NOLINTNEXTLINE(bugprone-reserved-identifier,readability-identifier-naming)
ssize_t __read_chk(int number, void* into, std::size_t size, std::size_t room);
}

namespace weft::detail {
namespace {

WEFT_HOOK_NEXT(read);
WEFT_HOOK_NEXT(readv);
WEFT_HOOK_NEXT(write);
WEFT_HOOK_NEXT(writev);
WEFT_HOOK_NEXT(close);
WEFT_HOOK_NEXT(dup2);
WEFT_HOOK_NEXT(dup3);
WEFT_HOOK_NEXT(__read_chk);

// The most that the system transfers in one call. A larger read() or write() is cut to it, as by the system. A size above
// most_of_memory, the whole address space, goes to the plain call, which fails.
constexpr std::size_t most_at_once = 0x7ffff000;
constexpr std::size_t most_of_memory = std::size_t{1} << 46;
constexpr std::size_t most_parts = IOV_MAX;
using namespace std::chrono_literals;
using weft::hook_options;

// Whether this vectored call has no bytes and so transfers nothing. recvmsg() and sendmsg() can't stand in for it on a datagram
// socket, where they would receive or send an empty message.
bool does_nothing(int number, const iovec* parts, int count) noexcept {
  return socket_option_of(number, SO_TYPE) != SOCK_STREAM && is_empty(parts, static_cast<std::size_t>(count));
}

// Makes call(own) on a FIFO, which has no call that does not block: `own` is a descriptor of its own, with O_NONBLOCK. Without
// one (the system refuses it, or has no /proc), call(number) is made if poll() permits it. So it is in packet mode (O_DIRECT), which
// belongs to the descriptor's open file.
template <class Call>
ssize_t call_on_fifo(int number, direction which, Call call) noexcept {
  if (const int flags = ::fcntl(number, F_GETFL); flags >= 0 && (flags & O_DIRECT) != 0)
    return call_if_ready(number, which, [&] { return call(number); });
  char name[32];
  std::snprintf(name, sizeof name, "/proc/self/fd/%d", number);
  const int own = ::open(name, (which == direction::in ? O_RDONLY : O_WRONLY) | O_NONBLOCK | O_CLOEXEC);
  if (own < 0 && which == direction::out && errno == ENXIO)
    return call(number);  // nobody reads: the write fails at once
  if (own < 0) return call_if_ready(number, which, [&] { return call(number); });
  const ssize_t result = call(own);
  const int error = errno;
  next_close(own);
  errno = error;
  return result;
}

// How a terminal that gives no lines ends a read: with `least` bytes, or `pause` behind the last byte, or, if `least` is 0, behind
// the beginning. Empty: a read ends when poll() reports the terminal as readable.
struct end_of_read {
  std::size_t least;
  clock::duration pause;
};
std::optional<end_of_read> end_of_read_from(int terminal) noexcept {
  const int kept = errno;
  termios how;
  const bool is_terminal = ::tcgetattr(terminal, &how) == 0;
  errno = kept;
  if (!is_terminal || (how.c_lflag & ICANON) != 0 || (how.c_cc[VMIN] == 1 && how.c_cc[VTIME] == 0)) return {};
  return end_of_read{how.c_cc[VMIN], how.c_cc[VTIME] * 100ms};
}
template <class Plain>
ssize_t read_of_raw_terminal(const hooked_call& call, int number, const end_of_read& ends, std::size_t size,
                             Plain plain) noexcept {
  if (ends.least == 0 && ends.pause == 0ms) return call.give(plain());          // never waits
  if (ends.least > size && ends.pause == 0ms) return run_on_pool(call, plain);  // poll() waits for more than the read
  const auto attempt = [&] { return call_if_ready(number, direction::in, plain); };
  if (ends.pause == 0ms) return finish_when_ready(call, number, direction::in, without_end, attempt(), attempt, plain);
  const bool has_limit = ends.least == 0;  // then what is there ends the read; else it goes on behind the first byte
  const clock::time_point until = has_limit ? after(ends.pause) : without_end;
  const waited how = is_ready(number, direction::in) ? waited::ready
                                                     : wait_until(call, number, direction::in, until,
                                                                  [&] { return is_ready(number, direction::in); });
  if (how == waited::timed_out) return call.give(ssize_t{0});
  if (how != waited::ready && how != waited::impossible) return call.fail(error_of(how, EAGAIN));
  return run_on_pool(call, plain);
}

// A read of a file that is no socket, of at most size() bytes. by_nowait() is preadv2() with RWF_NOWAIT, which fails with
// EOPNOTSUPP where this kind of file has no read that does not block. from(descriptor) reads, and may block.
template <class Size, class ByNowait, class From>
ssize_t read_of_file(const hooked_call& call, int number, Size size, ByNowait by_nowait, From from) noexcept {
  const file_kind kind = kind_of(number);
  const auto plain = [&] { return from(number); };
  if (kind == file_kind::regular && call.does(&hook_options::files)) return run_on_pool(call, plain);
  if (kind == file_kind::none || kind == file_kind::regular || kind == file_kind::socket ||
      !call.does(&hook_options::sockets))
    return call.give(plain());
  const ssize_t got = by_nowait();
  if (got >= 0 || errno != EOPNOTSUPP) {
    if (!would_block(got)) return call.give(got);
    if (is_non_blocking(number)) return call.fail(EAGAIN);
    return finish_when_ready(call, number, direction::in, without_end, got, by_nowait, plain);
  }
  if (is_non_blocking(number)) return call.give(plain());
  if (kind == file_kind::character) {
    if (const auto ends = end_of_read_from(number)) return read_of_raw_terminal(call, number, *ends, size(), plain);
  }
  const auto attempt = [&] {
    return kind == file_kind::pipe ? call_on_fifo(number, direction::in, from)
                                   : call_if_ready(number, direction::in, plain);
  };
  return finish_when_ready(call, number, direction::in, without_end, attempt(), attempt, plain);
}

template <class Size, class BySocket, class ByNowait, class From>
ssize_t read_hooked(const hooked_call& call, int number, Size size, BySocket by_socket, ByNowait by_nowait,
                    From from) noexcept {
  if (!may_begin(call)) {  // after a stop, calls that never wait are still made: regular files can be read
    const file_kind kind = kind_of(number);
    if (kind == file_kind::none || kind == file_kind::regular || !call.does(&hook_options::sockets) ||
        is_non_blocking(number))
      return call.give(from(number));
    return call.fail(ECANCELED);
  }
  if (call.does(&hook_options::sockets)) {
    const ssize_t got = by_socket();
    if (got >= 0 || errno != ENOTSOCK) {
      if (!would_block(got)) return call.give(got);
      if (is_non_blocking(number)) return call.fail(EAGAIN);
      return finish_when_ready(call, number, direction::in, limit_of(number, direction::in), got, by_socket,
                               [&] { return from(number); });
    }
  }
  return read_of_file(call, number, size, by_nowait, from);
}

// Whether a write of these bytes to an event adds 1 at most: if poll() reports room, there is room for that.
bool adds_one(const void* data, std::size_t size) noexcept {
  std::uint64_t count = 0;
  return size == sizeof count && copy_from_program(&count, data, size) && count <= 1;
}

// by_socket(done), by_nowait(done) and some(to, done, most) write what comes after the first `done` bytes; some(), which may
// block, to the descriptor `to`. `has_room`: if it is an event, some() does not block once poll() has reported room.
template <class Size, class BySocket, class ByNowait, class Some, class HasRoom>
ssize_t write_hooked(const hooked_call& call, int number, Size size, BySocket by_socket, ByNowait by_nowait, Some some,
                     HasRoom has_room) noexcept {
  const auto plain = [&](std::size_t done) { return some(number, done, most_at_once); };
  const bool begins = may_begin(call);
  const file_kind kind = kind_of(number);
  if (kind == file_kind::none) return call.give(plain(0));
  if (kind == file_kind::regular)
    return begins && call.does(&hook_options::files) ? run_on_pool(call, [&] { return plain(0); })
                                                     : call.give(plain(0));
  if (!call.does(&hook_options::sockets)) return call.give(plain(0));
  if (!begins) return is_non_blocking(number) ? call.give(plain(0)) : call.fail(ECANCELED);
  if (kind == file_kind::socket) return send_whole(call, number, size, by_socket, plain);
  if (is_non_blocking(number)) return call.give(plain(0));
  return write_whole(
      call, number, size,
      [&](std::size_t done) {
        const ssize_t wrote = by_nowait(done);
        if (wrote >= 0 || errno != EOPNOTSUPP) return wrote;  // also where nothing is left
        if (kind == file_kind::pipe)  // poll() reports it as writable if it has room for PIPE_BUF bytes
          return call_on_fifo(number, direction::out,
                              [&](int to) { return some(to, done, to == number ? PIPE_BUF : most_at_once); });
        if (kind == file_kind::other && has_room())
          return call_if_ready(number, direction::out, [&] { return some(number, done, most_at_once); });
        // Of another file poll() promises little, as room for one character of a terminal: a thread may block meanwhile. A
        // terminal gets small parts, between which a stop ends the call.
        if (is_ready(number, direction::out))
          return run_on_pool(call, [&] { return some(number, done, ::isatty(number) != 0 ? PIPE_BUF : most_at_once); });
        errno = EAGAIN;
        return ssize_t{-1};
      },
      plain);
}

// Whether dup2() and dup3() close `to`. Else they fail, or have nothing to do.
bool is_replaced(int from, int to) noexcept {
  rlimit numbers{};
  return from != to && ::fcntl(from, F_GETFD) >= 0 && ::getrlimit(RLIMIT_NOFILE, &numbers) == 0 &&
         static_cast<rlim_t>(to) < numbers.rlim_cur;
}

}  // namespace

bool is_ready(int number, direction which) noexcept {
  pollfd one{.fd = number, .events = which == direction::in ? short{POLLIN} : short{POLLOUT}, .revents = 0};
  return next_poll(&one, nfds_t{1}, 0) != 0;
}

extern const char hooks_streams;
const char hooks_streams = 0;  // makes the linker include this file; see all_sources in fiber_hooks.cpp

}  // namespace weft::detail

using namespace weft::detail;  // NOLINT(google-build-using-namespace): the hooks below belong to weft

extern "C" {

ssize_t read(int number, void* into, std::size_t size) {
  const hooked_call call{&hook_options::sockets, &hook_options::files};
  if (!call) return next_read(number, into, size);
  if (size == 0 || size > most_of_memory) return call.give(next_read(number, into, size));
  size = std::min(size, most_at_once);
  return read_hooked(
      call, number, [&] { return size; }, [&] { return next_recv(number, into, size, MSG_DONTWAIT); },
      [&] {
        const iovec part{into, size};
        return ::preadv2(number, &part, 1, -1, RWF_NOWAIT);
      },
      [&](int from) { return next_read(from, into, size); });
}

// NOLINTNEXTLINE(bugprone-reserved-identifier,readability-identifier-naming): -D_FORTIFY_SOURCE calls it
ssize_t __read_chk(int number, void* into, std::size_t size, std::size_t room) {
  return size > room ? next___read_chk(number, into, size, room) : read(number, into, size);
}

ssize_t readv(int number, const iovec* parts, int count) {
  const hooked_call call{&hook_options::sockets, &hook_options::files};
  if (!call) return next_readv(number, parts, count);
  if (count <= 0 || static_cast<std::size_t>(count) > most_parts || does_nothing(number, parts, count))
    return call.give(next_readv(number, parts, count));
  return read_hooked(
      call, number, [&] { return size_of(parts, static_cast<std::size_t>(count)); },
      [&] {
        msghdr all{};
        all.msg_iov = const_cast<iovec*>(parts);  // NOLINT: it is only read
        all.msg_iovlen = static_cast<std::size_t>(count);
        const ssize_t got = next_recvmsg(number, &all, MSG_DONTWAIT);
        return got < 0 && has_failed_without_bytes(parts, all.msg_iovlen) ? 0 : got;
      },
      [&] { return ::preadv2(number, parts, count, -1, RWF_NOWAIT); },
      [&](int from) { return next_readv(from, parts, count); });
}

ssize_t write(int number, const void* data, std::size_t size) {
  const hooked_call call{&hook_options::sockets, &hook_options::files};
  if (!call) return next_write(number, data, size);
  if (size > most_of_memory) return call.give(next_write(number, data, size));
  size = std::min(size, most_at_once);
  const auto at = [&](std::size_t done) { return static_cast<const char*>(data) + done; };
  return write_hooked(
      call, number, [&] { return size; },
      [&](std::size_t done) {
        return next_send(number, at(done), size - done, MSG_DONTWAIT | (done != 0 ? MSG_NOSIGNAL : 0));
      },
      [&](std::size_t done) {
        const iovec part{const_cast<char*>(at(done)), size - done};  // NOLINT: it is only read
        return ::pwritev2(number, &part, 1, -1, RWF_NOWAIT);
      },
      [&](int to, std::size_t done, std::size_t most) { return next_write(to, at(done), std::min(most, size - done)); },
      [&] { return adds_one(data, size); });
}

ssize_t writev(int number, const iovec* parts, int count) {
  const hooked_call call{&hook_options::sockets, &hook_options::files};
  if (!call) return next_writev(number, parts, count);
  if (count <= 0 || static_cast<std::size_t>(count) > most_parts || does_nothing(number, parts, count))
    return call.give(next_writev(number, parts, count));
  parts_left left{parts, static_cast<std::size_t>(count)};
  return write_hooked(
      call, number, [&] { return std::min(most_at_once, size_of(parts, static_cast<std::size_t>(count))); },
      [&](std::size_t done) {
        const auto [rest, its] = left.rest_after(done);
        if (its == 0) return ssize_t{0};
        msghdr all{};
        all.msg_iov = rest;
        all.msg_iovlen = its;
        const ssize_t sent = next_sendmsg(number, &all, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent >= 0 || done != 0) return sent;
        if (has_failed_without_bytes(rest, its)) return ssize_t{0};
        return errno == EPIPE ? next_sendmsg(number, &all, MSG_DONTWAIT) : sent;  // again, for SIGPIPE
      },
      [&](std::size_t done) {
        const auto [rest, its] = left.rest_after(done);
        return its == 0 ? ssize_t{0} : ::pwritev2(number, rest, static_cast<int>(its), -1, RWF_NOWAIT);
      },
      [&](int to, std::size_t done, std::size_t most) {
        const auto [rest, its] = most < most_at_once ? left.rest_after(done, most) : left.rest_after(done);
        if (its != 0) return next_writev(to, rest, static_cast<int>(its));
        errno = ENOMEM;
        return done != 0 ? ssize_t{0} : ssize_t{-1};
      },
      [] { return false; });
}

int close(int number) {
  if (const hooked_call call; call) end_waits_for(number);
  return next_close(number);
}

int dup2(int from, int to) {
  if (const hooked_call call; call && is_replaced(from, to)) end_waits_for(to);
  return next_dup2(from, to);
}

int dup3(int from, int to, int flags) {
  if (const hooked_call call; call && (flags & ~O_CLOEXEC) == 0 && is_replaced(from, to)) end_waits_for(to);
  return next_dup3(from, to, flags);
}

}  // extern "C"

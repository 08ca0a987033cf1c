// Shared by the hooked calls on file descriptors: what kind of file a descriptor names, and how a read or a write that would
// block goes on. `number` is always the descriptor.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <weft/blocking.hpp>

#include "hook/next.hpp"
#include "hook/waiting.hpp"

namespace weft::detail {

// The C library's functions that more than one source file calls.
#pragma GCC visibility push(hidden)
WEFT_HOOK_NEXT(poll);
WEFT_HOOK_NEXT(recv);
WEFT_HOOK_NEXT(recvmsg);
WEFT_HOOK_NEXT(send);
WEFT_HOOK_NEXT(sendmsg);
#pragma GCC visibility pop

enum class file_kind : std::uint8_t { none, socket, pipe, regular, character, other };
inline file_kind kind_of(int number) noexcept {
  struct stat about;
  if (::fstat(number, &about) != 0) return file_kind::none;
  if (S_ISSOCK(about.st_mode)) return file_kind::socket;
  if (S_ISFIFO(about.st_mode)) return file_kind::pipe;
  if (S_ISCHR(about.st_mode)) return file_kind::character;
  // Directories and block devices count as regular files: a call on them waits only for a disk.
  return S_ISREG(about.st_mode) || S_ISDIR(about.st_mode) || S_ISBLK(about.st_mode) ? file_kind::regular
                                                                                    : file_kind::other;
}

/// Whether the program has set O_NONBLOCK, so that a call must fail with EAGAIN. Also true for a number that is no descriptor:
/// the system call that follows reports that.
inline bool is_non_blocking(int number) noexcept {
  const int flags = ::fcntl(number, F_GETFL);
  return flags < 0 || (flags & O_NONBLOCK) != 0;
}

/// False: the descriptor is no socket. This function and socket_option_of() leave errno as it was.
inline bool get_socket_option(int number, int option, void* into, socklen_t size) noexcept {
  const int kept = errno;
  const bool is_there = ::getsockopt(number, SOL_SOCKET, option, into, &size) == 0;
  errno = kept;
  return is_there;
}
inline int socket_option_of(int number, int option) noexcept {
  int value = 0;
  return get_socket_option(number, option, &value, sizeof value) ? value : -1;
}

/// The deadline of a call that begins now, by SO_RCVTIMEO or SO_SNDTIMEO; `without_end` if that is not set, or for no socket.
inline clock::time_point limit_of(int number, direction which) noexcept {
  timeval limit{};
  const int option = which == direction::in ? SO_RCVTIMEO : SO_SNDTIMEO;
  if (!get_socket_option(number, option, &limit, sizeof limit) || (limit.tv_sec == 0 && limit.tv_usec == 0))
    return without_end;
  return after(std::chrono::seconds{limit.tv_sec} + std::chrono::microseconds{limit.tv_usec});
}

/// Whether a non-blocking call with this result would have blocked.
inline bool would_block(ssize_t result) noexcept { return result < 0 && errno == EAGAIN; }

/// Whether poll() reports the descriptor ready now. If poll() fails, that counts as ready: the call that follows fails, too.
bool is_ready(int number, direction which) noexcept;

/// Whether the next call on a socket takes an error from it that the next call without hooks would report. So a call that has
/// transferred a part asks this before each further attempt, and returns the part.
bool has_error_for_next_call(int number) noexcept;

/// Makes `call` if poll() says that it would not block; else fails with EAGAIN. Holds the lock of the socket, or the number, over
/// both.
template <class Call>
ssize_t call_if_ready(int number, direction which, Call call, bool is_socket = false) noexcept {
  const auto lock = lock_calls_on(number, is_socket);
  if (is_ready(number, which)) return call();
  errno = EAGAIN;
  return -1;
}

/// Finishes a call whose first try gave `result`. If that try would have blocked, waits until attempt(), which never blocks,
/// gives a result. If weft can't wait for the descriptor, calls plain(), which may block the thread.
template <class Attempt, class Plain>
ssize_t finish_when_ready(const hooked_call& call, int number, direction which, clock::time_point until, ssize_t result,
                          Attempt attempt, Plain plain) noexcept {
  if (!would_block(result)) return call.give(result);
  const waited how = wait_until(call, number, which, until, [&] { return !would_block(result = attempt()); });
  if (how == waited::ready) return call.give(result);
  if (how == waited::impossible) return call.give(plain());
  return call.fail(error_of(how, EAGAIN));
}

/// Reads what is there, or writes what there is room for, and waits if that is nothing. `until`, the time limit of the call, is
/// empty until the call first has to wait; it holds for all its waits.
template <class Attempt, class Plain>
ssize_t transfer(const hooked_call& call, int number, direction which, std::optional<clock::time_point>& until,
                 Attempt attempt, Plain plain) noexcept {
  const ssize_t result = attempt();
  if (!would_block(result)) return call.give(result);
  if (!until) {
    if (is_non_blocking(number)) return call.fail(EAGAIN);
    until = limit_of(number, which);
  }
  return finish_when_ready(call, number, which, *until, result, attempt, plain);
}

/// Makes a write, which waits until all bytes are written or it fails. attempt(done) and plain(done) write what comes after the
/// first `done` bytes. size() gives how many there are; it is asked once the system has read what describes them.
template <class Size, class Attempt, class Plain>
ssize_t write_whole(const hooked_call& call, int number, Size size, Attempt attempt, Plain plain) noexcept {
  std::size_t done = 0;
  std::optional<clock::time_point> until;
  for (;;) {
    const ssize_t wrote =
        transfer(call, number, direction::out, until, [&] { return attempt(done); }, [&] { return plain(done); });
    if (wrote < 0) return done != 0 ? call.give(static_cast<ssize_t>(done)) : wrote;
    done += static_cast<std::size_t>(wrote);
    if (wrote == 0 || done >= size()) return call.give(static_cast<ssize_t>(done));
  }
}

/// As write_whole(), on a socket. An error that comes after a part was sent is left to the next call. By TCP Fast Open, an
/// attempt may only begin to connect: the next ones are refused with EAGAIN until that has ended.
template <class Size, class Attempt, class Plain>
ssize_t send_whole(const hooked_call& call, int number, Size size, Attempt attempt, Plain plain) noexcept {
  const auto must_end = [number](std::size_t done) { return done != 0 && has_error_for_next_call(number); };
  return write_whole(
      call, number, size,
      [&](std::size_t done) {
        if (must_end(done)) return ssize_t{0};
        const ssize_t sent = attempt(done);
        if (sent < 0 && errno == EINPROGRESS && !is_non_blocking(number)) {
          end_unused_watches_of(number);  // what they have reported was before the connection
          errno = EAGAIN;
        }
        return sent;
      },
      [&](std::size_t done) { return must_end(done) ? ssize_t{0} : plain(done); });
}

/// Begins a call that may wait: yields to other fibers if a yield is due. False: the fiber was told to stop.
inline bool may_begin(const hooked_call& call) noexcept { return !call.is_stopped() && yield_if_due(); }

/// Runs `plain` on the pool for blocking calls while the fiber waits; on this thread if memory or a thread is lacking, or if no
/// fiber may be suspended.
template <class Plain>
ssize_t run_on_pool(const hooked_call& call, Plain plain) noexcept {
  if (!may_suspend()) return call.give(plain());
  struct answer {
    ssize_t result;
    int error;
  };
  const auto asks = [&plain]() noexcept {
    const ssize_t result = plain();
    return answer{result, errno};
  };
  try {
    const auto got = await_unless_stopped(as_result(blocking(asks)));
    if (!got || got->is_stopped()) return call.fail(ECANCELED);
    if (got->has_value()) return (*got)->result >= 0 ? call.give((*got)->result) : call.fail((*got)->error);
  } catch (...) {  // there is no memory
  }
  return call.give(plain());
}

}  // namespace weft::detail

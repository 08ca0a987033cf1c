// Reads and writes memory that the program has passed to a hooked function and that no system call has checked yet. A bad
// pointer must make the call fail with EFAULT, as without hooks, but a plain load would raise SIGSEGV. So the system copies the
// memory, by process_vm_readv() and process_vm_writev() on this process. Where it refuses these, as by a filter of seccomp, plain
// loads and stores are all that is left: a wait that suspends the fiber counts for more than EFAULT.
#pragma once

#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <weft/clock.hpp>

namespace weft::detail {

/// After process_vm_readv() or process_vm_writev() has given `copied`: whether the system refuses these calls.
inline bool is_refused(ssize_t copied) noexcept { return copied < 0 && (errno == EPERM || errno == ENOSYS); }

/// False: the memory can't be read.
inline bool copy_from_program(void* into, const void* from, std::size_t size) noexcept {
  const iovec mine{into, size}, its{const_cast<void*>(from), size};  // NOLINT: it is only read
  const ssize_t copied = ::process_vm_readv(::getpid(), &mine, 1, &its, 1, 0);
  if (!is_refused(copied)) return copied == static_cast<ssize_t>(size);
  std::memcpy(into, from, size);
  return true;
}
/// Does nothing if the memory can't be written, as the system does where it stores the time that is left.
inline void copy_to_program(void* into, const void* from, std::size_t size) noexcept {
  const iovec mine{const_cast<void*>(from), size}, its{into, size};  // NOLINT: it is only read
  if (is_refused(::process_vm_writev(::getpid(), &mine, 1, &its, 1, 0))) std::memcpy(into, from, size);
}

inline clock::duration duration_of(const timespec& t) noexcept {
  using std::chrono::nanoseconds;
  using std::chrono::seconds;
  constexpr std::int64_t most = std::chrono::duration_cast<seconds>(clock::duration::max()).count() - 1;
  if (t.tv_sec > most) return clock::duration::max();
  return seconds{t.tv_sec} + nanoseconds{t.tv_nsec};
}
/// False: the time can't be read, or makes no sense. The system call then reports that.
inline bool read_time(clock::duration* into, const timespec* from) noexcept {
  timespec time;
  if (!copy_from_program(&time, from, sizeof time)) return false;
  if (time.tv_sec < 0 || time.tv_nsec < 0 || time.tv_nsec >= 1'000'000'000) return false;
  *into = duration_of(time);
  return true;
}

/// The same of a time in microseconds. As in the C library, they may be more than a second.
inline bool read_time(clock::duration* into, const timeval* from) noexcept {
  timeval time;
  if (!copy_from_program(&time, from, sizeof time) || time.tv_sec < 0 || time.tv_usec < 0) return false;
  timespec same{.tv_sec = 0, .tv_nsec = time.tv_usec % 1'000'000 * 1000};
  if (__builtin_add_overflow(time.tv_sec, time.tv_usec / 1'000'000, &same.tv_sec))
    same.tv_sec = std::numeric_limits<time_t>::max();
  *into = duration_of(same);
  return true;
}

/// Whether all these parts are of size 0. Also false where they can't be read: the system call then reports EFAULT.
inline bool is_empty(const iovec* parts, std::size_t count) noexcept {
  iovec some[16];
  for (std::size_t done = 0; done != count;) {
    const std::size_t now = count - done < 16 ? count - done : 16;
    if (!copy_from_program(some, parts + done, now * sizeof(iovec))) return false;
    for (std::size_t i = 0; i != now; ++i)
      if (some[i].iov_len != 0) return false;
    done += now;
  }
  return true;
}

}  // namespace weft::detail

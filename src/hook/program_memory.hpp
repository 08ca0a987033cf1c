// Reads and writes memory that the program has passed to a hooked function and that no system call has checked yet. A bad
// pointer must make the call fail with EFAULT, as without hooks, but a plain load would raise SIGSEGV. So the system copies the
// memory, by process_vm_readv() and process_vm_writev() on this process.
#pragma once

#include <sys/uio.h>
#include <unistd.h>

#include <cstddef>

namespace weft::detail {

/// False: the memory can't be read, or the system refuses process_vm_readv().
inline bool copy_from_program(void* into, const void* from, std::size_t size) noexcept {
  const iovec mine{into, size}, its{const_cast<void*>(from), size};  // NOLINT: it is only read
  return ::process_vm_readv(::getpid(), &mine, 1, &its, 1, 0) == static_cast<ssize_t>(size);
}
/// Does nothing if the memory can't be written, as the system does where it stores the time that is left.
inline void copy_to_program(void* into, const void* from, std::size_t size) noexcept {
  const iovec mine{const_cast<void*>(from), size}, its{into, size};  // NOLINT: it is only read
  static_cast<void>(::process_vm_writev(::getpid(), &mine, 1, &its, 1, 0));
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

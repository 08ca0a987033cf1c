// What a hooked function reads of the program's memory before the system has seen it: where there is none, the call fails with
// EFAULT as the plain one does, where a plain load would end the program.
#pragma once

#include <sys/uio.h>
#include <unistd.h>

#include <cstddef>

namespace weft::detail {

/// False: there is nothing to read, or the system does not say.
inline bool copy_from_program(void* into, const void* from, std::size_t size) noexcept {
  const iovec mine{into, size}, its{const_cast<void*>(from), size};  // NOLINT: it is read alone
  return ::process_vm_readv(::getpid(), &mine, 1, &its, 1, 0) == static_cast<ssize_t>(size);
}
/// Where it can't be written, nothing happens, as the system does for times.
inline void copy_to_program(void* into, const void* from, std::size_t size) noexcept {
  const iovec mine{const_cast<void*>(from), size}, its{into, size};  // NOLINT: it is read alone
  static_cast<void>(::process_vm_writev(::getpid(), &mine, 1, &its, 1, 0));
}

/// Whether these parts have no bytes. Otherwise, or where they can't be read, the call itself says what comes of it.
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

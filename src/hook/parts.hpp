// The parts (iovecs) of a vectored call that are left after some of its bytes were transferred.
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

namespace weft::detail {

/// The sum of the parts' sizes. Only for parts that a system call has read before, so that they are known to be readable.
inline std::size_t size_of(const iovec* parts, std::size_t count) noexcept {
  std::size_t size = 0;
  for (std::size_t i = 0; i != count; ++i) size += parts[i].iov_len;
  return size;
}

/// After a vectored call has failed and set errno: whether its parts have no bytes. For such parts readv() and writev() return
/// 0, while recvmsg() and sendmsg() fail on a socket that is not connected. False if the system may not have read the parts.
inline bool has_failed_without_bytes(const iovec* parts, std::size_t count) noexcept {
  if (errno == EFAULT || errno == ENOTSOCK || errno == EBADF) return false;
  for (std::size_t i = 0; i != count; ++i)
    if (parts[i].iov_len != 0) return false;
  return true;
}

/// Copies the parts only once some bytes were transferred, or if not all may be at once: the caller's array must not be changed.
class parts_left {
 public:
  parts_left(const iovec* parts, std::size_t count) noexcept : parts_{parts}, count_{count} {}

  /// The parts after the first `done` bytes, with `most` bytes at most. Empty if nothing is left, or if there is no memory for
  /// the copy. Unless all are wanted, a system call has read the parts before, so that they are known to be readable.
  struct view {
    iovec* parts;
    std::size_t count;
  };
  view rest_after(std::size_t done, std::size_t most = SIZE_MAX) noexcept {
    if (done == 0 && most == SIZE_MAX)
      return {const_cast<iovec*>(parts_), count_};  // NOLINT: the system only reads them
    if (!copy_) copy_.reset(new (std::nothrow) iovec[count_]);
    if (!copy_) return {nullptr, 0};
    std::size_t left = 0;
    for (std::size_t i = 0; i != count_ && most != 0; ++i) {
      const std::size_t skipped = done < parts_[i].iov_len ? done : parts_[i].iov_len;
      done -= skipped;
      const std::size_t taken = std::min(most, parts_[i].iov_len - skipped);
      most -= taken;
      if (taken != 0) copy_[left++] = {static_cast<char*>(parts_[i].iov_base) + skipped, taken};
    }
    return {copy_.get(), left};
  }

 private:
  const iovec* parts_;
  std::size_t count_;
  std::unique_ptr<iovec[]> copy_;
};

}  // namespace weft::detail

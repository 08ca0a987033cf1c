// System calls for files that fail when a test says so, by functions that the linker puts before those of the C library and of
// liburing (--wrap), as system_calls.hpp has them for sockets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "support/injection.hpp"

namespace test {

enum class file_call : unsigned char {
  none,
  try_read,   ///< preadv2() that is told not to wait
  try_write,  ///< pwritev2() likewise
  read,       ///< preadv2() that may wait
  write,      ///< pwritev2() likewise
  fsync,
  fdatasync,
  fallocate,
  ftruncate,
  openat,
  statx,
  close,
  lock,  ///< fcntl(F_OFD_SETLK)
  rename,
  ring,    ///< what a ring was handed: it does nothing, and says so
  submit,  ///< a ring whose submissions are full is to hand them over
};

const char* name_of(file_call one) noexcept;

using file_fault = fault_of<file_call>;
using file_injection = injection_of<file_call>;

/// While it lives, no read and no write is done without waiting: all go by a ring or a thread.
class nothing_at_once {
 public:
  nothing_at_once() noexcept;
  nothing_at_once(const nothing_at_once&) = delete;
  ~nothing_at_once();
};

/// What changes a disk: a call that has succeeded, or that a ring was handed.
struct noted_call {
  file_call what;       ///< try_write and write are one: write
  std::uint64_t inode;  ///< of the file; of a rename, of the one that was renamed
  friend bool operator==(const noted_call&, const noted_call&) = default;
};
/// The writes, syncs and renames that are made while it lives. One at a time in a process; the calls, on any thread.
class noted_calls {
 public:
  noted_calls() noexcept;
  noted_calls(const noted_calls&) = delete;
  ~noted_calls();
  std::vector<noted_call> so_far() const;  ///< in their order
};

/// How many calls rings were handed so far.
std::size_t handed_to_rings() noexcept;

}  // namespace test

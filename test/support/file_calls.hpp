// System calls for files that fail when a test says so, by functions that the linker puts before those of the C library and of
// liburing (--wrap), as system_calls.hpp has them for sockets.
#pragma once

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <functional>
#include <initializer_list>
#include <string>

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

/// It moves a byte at most.
inline constexpr int one_byte = -1;

/// It is as it would be, behind what the injection does.
inline constexpr int meanwhile = -2;

/// What calls in a row come to: error numbers, `one_byte`, `meanwhile`, or 0, as they are.
struct file_fault {
  static constexpr std::size_t most = 8;
  file_fault(file_call where, std::initializer_list<int> what) : at{where} {
    for (const int one : what) results[count++] = one;
  }
  std::string to_string() const;

  file_call at;
  std::array<int, most> results{};
  std::size_t count = 0;
};

/// From now on to its end, calls of that kind fail that come after `before` others. One at a time in a process.
class file_injection {
 public:
  explicit file_injection(const file_fault& what, std::size_t before = 0, std::function<void()> does = {});
  file_injection(const file_injection&) = delete;
  ~file_injection();
  std::size_t struck() const noexcept;  ///< how many of the results were given
};

/// While it lives, no read and no write is done without waiting: all go by a ring or a thread.
class nothing_at_once {
 public:
  nothing_at_once() noexcept;
  nothing_at_once(const nothing_at_once&) = delete;
  ~nothing_at_once();
};

/// How many calls rings were handed so far.
std::size_t handed_to_rings() noexcept;

}  // namespace test

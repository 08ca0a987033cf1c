// The system calls with a descriptor's number. In a header of their own, which the model test of descriptors replaces.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

namespace weft::detail {

inline void close_file(int number) noexcept { ::close(number); }
/// Shuts down both directions of a connection; has no effect on another file.
inline void shut_down_file(int number) noexcept { ::shutdown(number, SHUT_RDWR); }
/// Returns an error number, or 0.
inline int shut_down_writes_of(int number) noexcept { return ::shutdown(number, SHUT_WR) == 0 ? 0 : errno; }

}  // namespace weft::detail

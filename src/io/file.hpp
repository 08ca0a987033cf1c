// What is called in the system with a descriptor's number. Apart, so that the model of descriptors has files of its own.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

namespace weft::detail {

inline void close_file(int number) noexcept { ::close(number); }
/// Both ways of a connection; something else is left as it is.
inline void shut_down_file(int number) noexcept { ::shutdown(number, SHUT_RDWR); }
/// An error number.
inline int shut_down_writes_of(int number) noexcept { return ::shutdown(number, SHUT_WR) == 0 ? 0 : errno; }

}  // namespace weft::detail

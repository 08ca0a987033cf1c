// The calls below the hooks, which fail where a test says so. A program that is linked with hook_calls.cpp and the options of
// weft_interposes in test/CMakeLists.txt has these between the hooks and the C library, or a sanitizer.
#pragma once

#include <functional>
#include <initializer_list>

#include "support/injection.hpp"

namespace test {

enum class below : unsigned char {
  none,
  recv,
  recvfrom,
  recvmsg,
  recvmmsg,
  send,
  sendto,
  sendmsg,
  sendmmsg,
  read,
  write,
  pread,
  pwrite,
  pread64,
  pwrite64,
  readv,
  writev,
  preadv,
  pwritev,
  preadv64,
  pwritev64,
  preadv2,      ///< with RWF_NOWAIT, as the hooks read pipes
  pwritev2,     ///< the same
  by_preadv2,   ///< without
  by_pwritev2,  ///< the same
  by_preadv64v2,
  by_pwritev64v2,
  connect,
  accept,
  accept4,
  poll,
  select,
  epoll_wait,
  epoll_ctl,
  epoll_create1,
  getaddrinfo,
};
const char* name_of(below one) noexcept;

/// EAGAIN of a TCP connection is followed by the change that a caller waits for; that of accept() comes because another one
/// has taken the connection, and is followed by the next one.
using fault_below = fault_of<below>;
using injection_below = injection_of<below>;

/// Only calls with these numbers are counted, and fail: what the runtime itself calls does not.
void concern(std::initializer_list<int> numbers) noexcept;
/// Whether the system refuses reads and writes with RWF_NOWAIT of these numbers, as it does of some kinds of files.
void refuse_nowait(bool does) noexcept;
/// Calls of this kind with numbers that are concerned, and lookups of names, call `does` first, on their thread. One at a time.
class watch_below {
 public:
  watch_below(below which, std::function<void()> does);
  watch_below(const watch_below&) = delete;
  ~watch_below();
};
/// How many connections accept() has lost to another one since it was asked.
int lost_connections() noexcept;

}  // namespace test

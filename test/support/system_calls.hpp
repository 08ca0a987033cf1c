// System calls for sockets that fail when a test says so. A program that is to have them fail is linked with
// system_calls.cpp and the options of weft_interposes in test/CMakeLists.txt: the linker then gives all calls that weft makes
// to the functions there (--wrap), so that weft itself has nothing for this, and a sanitizer's own versions stay in between.
//
//     const test::injection one{{test::call::recv, {EINTR, test::one_byte}}, 3};  // the fourth and the fifth call
//     one.spares(peer);                                                                      // but for those with that number
//     ...
//     EXPECT_EQ(one.struck(), 2);
#pragma once

#include <sys/socket.h>

#include <cstddef>

#include "support/injection.hpp"

namespace test {

enum class call : unsigned char {
  none,
  socket,
  bind,
  listen,
  connect,
  accept4,
  recv,
  recvfrom,
  send,
  lend,  // a send with MSG_ZEROCOPY
  sendmsg,
  recvmsg,
  recvmmsg,
  sendmmsg,
  sendfile,
  pread,
  poll,
  shutdown,
  fcntl,
  epoll_ctl,
  eventfd,
};

const char* name_of(call one) noexcept;

/// EAGAIN is what a call finds that comes too early, and `one_byte` what a read finds of which the rest is on its way. So they
/// are followed by the change for which a caller has to wait: of a TCP connection that there is something to read, or room. Of
/// any other socket nothing can make the system report anew that there is something to read, so the injection's function does
/// that, by sending something more.
/// EINTR and EALREADY of connect() come after the call has been made.
using fault = fault_of<call>;
using injection = injection_of<call>;

/// The calls themselves, as a test makes them, which are never counted.
namespace real {
extern "C" {
int __real_socket(int family, int type, int protocol);
int __real_connect(int number, const sockaddr* to, socklen_t size);
int __real_accept4(int number, sockaddr* of, socklen_t* size, int flags);
ssize_t __real_recv(int number, void* into, std::size_t size, int flags);
ssize_t __real_send(int number, const void* data, std::size_t size, int flags);
int __real_shutdown(int number, int how);
}
}  // namespace real

}  // namespace test

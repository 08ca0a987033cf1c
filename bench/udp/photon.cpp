// One thread of its own, on epoll, which receives and answers.
#include <photon/common/alog.h>
#include <photon/net/basic_socket.h>
#include <photon/photon.h>
#include <sys/socket.h>

#include <array>

#include "../harness/net/server.hpp"
#include "workload.hpp"

int main() {
  set_log_output(log_output_null);
  photon::init(photon::INIT_EVENT_EPOLL, photon::INIT_IO_NONE);
  std::array<char, bench::largest_datagram> buffer;
  sockaddr_storage from{};
  iovec part{.iov_base = buffer.data(), .iov_len = buffer.size()};
  for (;;) {
    msghdr message{};
    message.msg_name = &from;
    message.msg_namelen = sizeof from;
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    part.iov_len = buffer.size();
    const ssize_t size = photon::net::recvmsg(bench::listening_socket, &message, 0);
    if (size < 0) continue;
    part.iov_len = static_cast<std::size_t>(size);
    photon::net::sendmsg(bench::listening_socket, &message, 0);
  }
}

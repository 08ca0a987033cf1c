// The limit of epoll, by batches: edge-triggered; one that was not filled has taken everything.
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>

#include "../harness/net/server.hpp"
#include "workload.hpp"

namespace {

struct batch {
  std::array<std::array<char, bench::largest_datagram>, bench::most_in_a_batch> bytes;
  std::array<sockaddr_in, bench::most_in_a_batch> senders;
  std::array<iovec, bench::most_in_a_batch> parts;
  std::array<mmsghdr, bench::most_in_a_batch> messages{};

  void echo() {
    for (;;) {
      for (std::size_t i = 0; i != messages.size(); ++i) {
        parts[i] = {.iov_base = bytes[i].data(), .iov_len = bytes[i].size()};
        msghdr& one = messages[i].msg_hdr;
        one = {};
        one.msg_name = &senders[i];
        one.msg_namelen = sizeof senders[i];
        one.msg_iov = &parts[i];
        one.msg_iovlen = 1;
      }
      const int count = ::recvmmsg(bench::listening_socket, messages.data(), messages.size(), 0, nullptr);
      if (count <= 0) return;
      for (int i = 0; i != count; ++i) {
        const auto which = static_cast<std::size_t>(i);
        parts[which].iov_len = messages[which].msg_len;
      }
      if (::sendmmsg(bench::listening_socket, messages.data(), static_cast<unsigned>(count), 0) != count) return;
      if (static_cast<std::size_t>(count) < messages.size()) return;
    }
  }
};

}  // namespace

int main() {
  const int set = ::epoll_create1(EPOLL_CLOEXEC);
  epoll_event wanted{.events = EPOLLIN | EPOLLET, .data = {.fd = bench::listening_socket}};
  ::epoll_ctl(set, EPOLL_CTL_ADD, bench::listening_socket, &wanted);
  static batch all;
  for (epoll_event event;;)
    if (::epoll_wait(set, &event, 1, -1) == 1) all.echo();
}

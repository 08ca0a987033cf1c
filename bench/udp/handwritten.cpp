// The limit of epoll, one by one: edge-triggered, so each wait is behind a receive that finds nothing.
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>

#include "../harness/net/server.hpp"
#include "workload.hpp"

namespace {

void echo() {
  std::array<char, bench::largest_datagram> buffer;
  for (;;) {
    sockaddr_in sender;
    socklen_t size = sizeof sender;
    auto* const any = reinterpret_cast<sockaddr*>(&sender);
    const ssize_t got = ::recvfrom(bench::listening_socket, buffer.data(), buffer.size(), 0, any, &size);
    if (got < 0) return;
    ::sendto(bench::listening_socket, buffer.data(), static_cast<std::size_t>(got), 0, any, size);
  }
}

}  // namespace

int main() {
  const int set = ::epoll_create1(EPOLL_CLOEXEC);
  epoll_event wanted{.events = EPOLLIN | EPOLLET, .data = {.fd = bench::listening_socket}};
  ::epoll_ctl(set, EPOLL_CTL_ADD, bench::listening_socket, &wanted);
  for (epoll_event event;;)
    if (::epoll_wait(set, &event, 1, -1) == 1) echo();
}

// The limit of epoll, one by one: edge-triggered, so each wait is behind a receive that finds nothing.
#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>

#include "../harness/net/server.hpp"
#include "workload.hpp"

namespace {

void echo() {
  std::array<char, bench::largest_datagram> buffer;
  for (;;) {
    const ssize_t got = ::recv(bench::listening_socket, buffer.data(), buffer.size(), 0);
    if (got < 0) return;
    ::send(bench::listening_socket, buffer.data(), static_cast<std::size_t>(got), 0);
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

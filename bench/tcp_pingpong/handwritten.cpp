// The limit of epoll: edge-triggered, one read and one write a request, one buffer a thread. Each thread has a set of its own,
// and the first one, which accepts, deals the connections out.
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <thread>
#include <vector>

#include "../harness/net/server.hpp"

namespace {

std::vector<int> sets;

void watch(int set, int socket, unsigned events) {
  epoll_event wanted{.events = events, .data = {.fd = socket}};
  ::epoll_ctl(set, EPOLL_CTL_ADD, socket, &wanted);
}

void accept_all() {
  static std::size_t next = 0;
  for (int socket; (socket = ::accept4(bench::listening_socket, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0;)
    watch(sets[next++ % sets.size()], socket, EPOLLIN | EPOLLRDHUP | EPOLLET);
}

/// A read that does not fill the buffer has taken everything, unless the end came, too.
void echo(int socket, bool has_ended) {
  std::array<char, bench::large_buffer> buffer;
  for (;;) {
    const ssize_t size = ::recv(socket, buffer.data(), buffer.size(), 0);
    if (size > 0 && ::send(socket, buffer.data(), static_cast<std::size_t>(size), MSG_NOSIGNAL) == size) {
      if (static_cast<std::size_t>(size) < buffer.size() && !has_ended) return;
      continue;
    }
    ::close(socket);  // an end, an error, or a peer that does not read
    return;
  }
}

void serve(int set) {
  std::array<epoll_event, 256> events;
  for (;;) {
    const int count = ::epoll_wait(set, events.data(), static_cast<int>(events.size()), -1);
    for (int i = 0; i < count; ++i) {
      const epoll_event& each = events[static_cast<std::size_t>(i)];
      if (each.data.fd == bench::listening_socket)
        accept_all();
      else
        echo(each.data.fd, (each.events & ~static_cast<unsigned>(EPOLLIN)) != 0);
    }
  }
}

}  // namespace

int main(int count, char** words) {
  const auto options = bench::read_server_options(count, words);
  for (std::size_t i = 0; i != options.threads; ++i) sets.push_back(::epoll_create1(EPOLL_CLOEXEC));
  watch(sets[0], bench::listening_socket, EPOLLIN);
  for (std::size_t i = 1; i != options.threads; ++i) std::thread{serve, sets[i]}.detach();
  serve(sets[0]);
}

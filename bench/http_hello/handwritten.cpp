// The limit of epoll, as in tcp_pingpong: edge-triggered, one read and one write a request, one buffer a thread.
#include "workload.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <thread>
#include <vector>

#include "../harness/net/server.hpp"

namespace {

struct session {
  int socket;
  bench::requests all;
};

std::vector<int> sets;

void watch(int set, int socket, void* what, unsigned events) {
  epoll_event wanted{.events = events, .data = {.ptr = what}};
  ::epoll_ctl(set, EPOLL_CTL_ADD, socket, &wanted);
}

void accept_all() {
  static std::size_t next = 0;
  for (int socket; (socket = ::accept4(bench::listening_socket, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0;)
    watch(sets[next++ % sets.size()], socket, new session{socket, {}}, EPOLLIN | EPOLLRDHUP | EPOLLET);
}

bool answer(int socket, int complete) {
  for (; complete > 0; --complete)
    if (::send(socket, bench::hello.data(), bench::hello.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(bench::hello.size()))
      return false;
  return complete == 0;
}

void talk(session* with, bool has_ended) {
  std::array<char, bench::large_buffer> buffer;
  for (;;) {
    const ssize_t size = ::recv(with->socket, buffer.data(), buffer.size(), 0);
    if (size <= 0 || !answer(with->socket, with->all.feed({buffer.data(), static_cast<std::size_t>(size)}))) break;
    if (static_cast<std::size_t>(size) < buffer.size() && !has_ended) return;
  }
  ::close(with->socket);
  delete with;
}

void serve(int set) {
  std::array<epoll_event, 256> events;
  for (;;) {
    const int count = ::epoll_wait(set, events.data(), static_cast<int>(events.size()), -1);
    for (int i = 0; i < count; ++i) {
      const epoll_event& each = events[static_cast<std::size_t>(i)];
      if (each.data.ptr == nullptr)
        accept_all();
      else
        talk(static_cast<session*>(each.data.ptr), (each.events & ~static_cast<unsigned>(EPOLLIN)) != 0);
    }
  }
}

}  // namespace

int main(int count, char** words) {
  const auto options = bench::read_server_options(count, words);
  for (std::size_t i = 0; i != options.threads; ++i) sets.push_back(::epoll_create1(EPOLL_CLOEXEC));
  watch(sets[0], bench::listening_socket, nullptr, EPOLLIN);
  for (std::size_t i = 1; i != options.threads; ++i) std::thread{serve, sets[i]}.detach();
  serve(sets[0]);
}

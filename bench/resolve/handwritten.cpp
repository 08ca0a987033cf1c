// The limit of c-ares: one channel on an epoll set, on one thread.
#define CARES_NO_DEPRECATED
#include <ares.h>
#include <sys/epoll.h>
#include <sys/time.h>

#include <algorithm>
#include <array>

#include "lookups.hpp"

namespace {

const int set = ::epoll_create1(EPOLL_CLOEXEC);
ares_channel channel;
std::uint64_t begun, ended, right, wanted;

void watch(void*, int socket, int to_read, int to_write) {
  epoll_event event{};
  event.events = (to_read != 0 ? EPOLLIN : 0U) | (to_write != 0 ? EPOLLOUT : 0U);
  event.data.fd = socket;
  if (event.events == 0)
    ::epoll_ctl(set, EPOLL_CTL_DEL, socket, nullptr);
  else if (::epoll_ctl(set, EPOLL_CTL_ADD, socket, &event) != 0)
    ::epoll_ctl(set, EPOLL_CTL_MOD, socket, &event);
}

void begin_next();

void found(void*, int status, int, ares_addrinfo* all) {
  if (status == ARES_SUCCESS && all->nodes != nullptr && all->nodes->ai_next != nullptr &&
      bench::is_right(all->nodes->ai_addr))
    ++right;
  if (all != nullptr) ::ares_freeaddrinfo(all);
  ++ended;
  if (begun != wanted) begin_next();
}

void begin_next() {
  ares_addrinfo_hints hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = ARES_AI_NUMERICSERV;
  ::ares_getaddrinfo(channel, bench::host_name(begun++).c_str(), "80", &hints, found, nullptr);
}

void turn() {
  timeval left{};
  const timeval* const due = ::ares_timeout(channel, nullptr, &left);
  std::array<epoll_event, 16> came;
  const int count = ::epoll_wait(set, came.data(), static_cast<int>(came.size()),
                                 due != nullptr ? static_cast<int>(due->tv_sec * 1000 + due->tv_usec / 1000 + 1) : -1);
  if (count <= 0) ::ares_process_fd(channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
  for (int i = 0; i < count; ++i) {
    const epoll_event& one = came[static_cast<std::size_t>(i)];
    ::ares_process_fd(channel, (one.events & ~EPOLLOUT) != 0 ? one.data.fd : ARES_SOCKET_BAD,
                      (one.events & EPOLLOUT) != 0 ? one.data.fd : ARES_SOCKET_BAD);
  }
}

}  // namespace

int main(int count, char** words) {
  const std::size_t at_once = bench::read_server_options(count, words).connections;
  ::ares_library_init(ARES_LIB_INIT_ALL);
  ares_options options{};
  options.sock_state_cb = watch;
  if (::ares_init_options(&channel, &options, ARES_OPT_SOCK_STATE_CB) != ARES_SUCCESS) return 1;
  bench::serve_lookups([at_once](std::uint64_t lookups) {
    begun = ended = right = 0;
    wanted = lookups;
    for (std::size_t i = 0; i != std::min<std::uint64_t>(at_once, lookups) && begun != wanted; ++i) begin_next();
    while (ended != wanted) turn();
    return right;
  });
}

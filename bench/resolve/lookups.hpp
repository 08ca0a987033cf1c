// What the programs of this folder in C++ share: the connection over which they are told what to do, and what is right.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <poll.h>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "../harness/net/server.hpp"

namespace bench {

inline std::string host_name(std::uint64_t number) { return "host-" + std::to_string(number % 1000) + ".bench.test"; }

/// Of the first of two.
inline bool is_right(const sockaddr* address) {
  return address->sa_family == AF_INET &&
         reinterpret_cast<const sockaddr_in*>(address)->sin_addr.s_addr == htonl(0x7f000007);
}

/// Has `look_up(count)` do what the client says, again and again; it gives how many were right.
template <class LookUp>
void serve_lookups(LookUp look_up) {
  pollfd one{.fd = listening_socket, .events = POLLIN, .revents = 0};
  ::poll(&one, 1, -1);
  const int client = ::accept(listening_socket, nullptr, nullptr);
  for (std::uint64_t count = 0; ::recv(client, &count, sizeof count, MSG_WAITALL) == sizeof count;) {
    const std::uint64_t right = look_up(count);
    if (::send(client, &right, sizeof right, MSG_NOSIGNAL) != sizeof right) break;
  }
  std::exit(1);
}

}  // namespace bench

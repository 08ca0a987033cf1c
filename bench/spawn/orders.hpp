// What the programs of this folder in C++ share: the connection over which they are told how many processes to run.
#pragma once

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

#include "../harness/net/server.hpp"

namespace bench {

/// Has `run(count)` do what the client says, again and again; it gives how many have ended with 0.
template <class Run>
void serve_orders(Run run) {
  pollfd one{.fd = listening_socket, .events = POLLIN, .revents = 0};
  ::poll(&one, 1, -1);
  const int client = ::accept4(listening_socket, nullptr, nullptr, SOCK_CLOEXEC);
  for (std::uint64_t count = 0; ::recv(client, &count, sizeof count, MSG_WAITALL) == sizeof count;) {
    const std::uint64_t right = run(count);
    if (::send(client, &right, sizeof right, MSG_NOSIGNAL) != sizeof right) break;
  }
  std::exit(1);
}

}  // namespace bench

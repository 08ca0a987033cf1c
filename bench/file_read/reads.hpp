// What the programs of this folder in C++ share: what they are told, where a read is, and what is right.
#pragma once

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "../harness/net/server.hpp"

namespace bench {

/// PROGRAM THREADS BYTES AT-ONCE PATH KIND FILE-BYTES
struct read_options {
  std::size_t bytes = 4096, at_once = 1;
  std::string path;
  bool direct = false, in_order = false;
  std::uint64_t blocks = 0;  // of that many bytes

  read_options(int count, char** words) {
    if (count < 7) std::exit(2);
    bytes = std::strtoull(words[2], nullptr, 10);
    at_once = std::strtoull(words[3], nullptr, 10);
    path = words[4];
    direct = std::strcmp(words[5], "direct") == 0;
    in_order = std::strcmp(words[5], "stream") == 0;
    blocks = std::strtoull(words[6], nullptr, 10) / bytes;
  }
  int flags() const noexcept { return O_RDONLY | O_CLOEXEC | (direct ? O_DIRECT : 0); }
  /// Where the read of that number is.
  std::uint64_t block_of(std::uint64_t number) const noexcept {
    return (in_order ? number : number * 2654435761) % blocks;
  }
  /// Each piece of 4 KiB begins with its number.
  bool is_right(const void* read, std::uint64_t block) const noexcept {
    std::uint64_t found;
    std::memcpy(&found, read, sizeof found);
    return found == block * (bytes / 4096);
  }
};

/// Has `read(count)` do what the client says, again and again; it gives how many were right.
template <class Read>
void serve_reads(Read read) {
  pollfd one{.fd = listening_socket, .events = POLLIN, .revents = 0};
  ::poll(&one, 1, -1);
  const int client = ::accept(listening_socket, nullptr, nullptr);
  for (std::uint64_t count = 0; ::recv(client, &count, sizeof count, MSG_WAITALL) == sizeof count;) {
    const std::uint64_t right = read(count);
    if (::send(client, &right, sizeof right, MSG_NOSIGNAL) != sizeof right) break;
  }
  std::exit(1);
}

}  // namespace bench

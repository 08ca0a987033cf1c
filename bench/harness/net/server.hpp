// What a server program of a workload over a network is given: its client (client.hpp) starts it as
//
//     bench_tcp_pingpong_weft THREADS BYTES [CONNECTIONS [unix]]
//
// with a socket that listens, or is for datagrams, as descriptor 3: so backlog, congestion control and TCP_NODELAY are the same
// for all servers, which inherit them. It serves until it is killed, measures nothing, and may print what it likes.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <string_view>

namespace bench {

inline constexpr int listening_socket = 3;

struct server_options {
  std::size_t threads = 1;
  std::size_t buffer = 4096;    ///< bytes that each connection has to read into: this or small_buffer
  std::size_t connections = 0;  ///< how many there will be at once, where that is said: for limits that have to know
  bool is_unix = false;         ///< of this machine, not of TCP: for libraries that have a type for each
};

inline constexpr std::size_t large_buffer = 4096, small_buffer = 64;

inline server_options read_server_options(int count, char** words) {
  server_options out;
  if (count > 1) out.threads = std::strtoull(words[1], nullptr, 10);
  if (count > 2) out.buffer = std::strtoull(words[2], nullptr, 10);
  if (count > 3) out.connections = std::strtoull(words[3], nullptr, 10);
  out.is_unix = count > 4 && words[4] == std::string_view{"unix"};
  return out;
}

}  // namespace bench

// tcp_pingpong: clients send 64 bytes, get them back, and send the next. One item is a request, and its time the server's
// processor time for it. --size is the number of connections, and 1'000'000 more for each thread of the server beyond the
// first. What a server is told is in harness/net/server.hpp; those of this folder serve connection_memory, accept and resets,
// too.
//
// A server reads what has come into 4 KiB that each connection has (a limit may do with less), writes it, and reads again. It
// is written as its library's authors write one. The client is one thread on epoll; with one thread of the server both are
// pinned to the same processor.
#pragma once

#include <cstddef>

namespace bench {

inline constexpr std::size_t message_bytes = 64;

constexpr std::size_t connections_of(std::size_t size) { return size % 1'000'000; }
constexpr std::size_t server_threads_of(std::size_t size) { return 1 + size / 1'000'000; }

}  // namespace bench

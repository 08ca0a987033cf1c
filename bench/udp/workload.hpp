// udp: a client sends so many datagrams of 64 bytes at a time, gets all of them back, and sends the next. One item is a datagram
// and its answer, and its time the server's processor time for it. --size is how many are sent at a time.
//
// A server has one socket, descriptor 3, and sends each datagram back to whoever has sent it. Most receive and send one by one,
// as their libraries do; a variant `batches` does so by one system call for several. The client is one thread, which is pinned
// to the processor of the server.
#pragma once

#include <cstddef>

namespace bench {

  inline constexpr std::size_t datagram_bytes = 64, largest_datagram = 2048, most_in_a_batch = 16; }  // namespace bench

// Connections for tests.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <weft/net.hpp>
#include <weft/runtime.hpp>
#include <weft/task.hpp>

#include "support/in_runtime.hpp"
#include "support/weft_test.hpp"

namespace test {

using weft::task;
using weft::net::endpoint;
using weft::net::listener;
using weft::net::stream;

inline const endpoint anywhere{"127.0.0.1", 0};

inline std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span{text}); }

// Two ends of a connection, of which each is watched by where this runs.
struct connection {
  stream here, there;
};
inline connection connected() {
  int both[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, both), 0);
  return {stream::adopt(both[0]), stream::adopt(both[1])};
}

inline task<connection> connected_by_tcp() {
  listener at = co_await weft::net::listen(anywhere);
  stream here = co_await weft::net::connect(at.local());
  stream there = co_await at.accept();
  co_return connection{std::move(here), std::move(there)};
}

/// Whether it has something to read, or is at its end.
inline bool is_readable(const stream& one) {
  pollfd asked{.fd = one.native_handle(), .events = POLLIN, .revents = 0};
  return ::poll(&asked, 1, 0) == 1;
}
/// Whether it has room for something.
inline bool is_writable(const stream& one) {
  pollfd asked{.fd = one.native_handle(), .events = POLLOUT, .revents = 0};
  return ::poll(&asked, 1, 0) == 1;
}

inline task<std::string> read_exactly(const stream& from, std::size_t size) {
  std::string text(size, '\0');
  std::span<std::byte> left = std::as_writable_bytes(std::span{text});
  while (!left.empty()) {
    const std::size_t got = co_await from.read(left);
    if (got == 0) break;
    left = left.subspan(got);
  }
  text.resize(size - left.size());
  co_return text;
}

inline task<std::string> read_all(const stream& from) {
  std::string text;
  std::array<std::byte, 4096> buffer;
  while (const std::size_t got = co_await from.read(buffer))
    text.append(reinterpret_cast<const char*>(buffer.data()), got);
  co_return text;
}

}  // namespace test

#include <array>
#include <span>
#include <weft/weft.hpp>

#include "../harness/net/server.hpp"
#include "workload.hpp"

namespace {

weft::task<> echo() {
  const auto socket = weft::net::datagram::adopt(bench::listening_socket);
  std::array<std::byte, bench::largest_datagram> buffer;
  for (;;) {
    const weft::net::received got = co_await socket.receive(buffer);
    co_await socket.send(std::span{buffer}.first(got.size));
  }
}

}  // namespace

int main() {
  weft::runtime rt{{.threads = 1}};
  rt.run(echo());
}

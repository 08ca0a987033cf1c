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
    const weft::net::received_from got = co_await socket.receive_from(buffer);
    co_await socket.send_to(std::span{buffer}.first(got.size), got.from);
  }
}

}  // namespace

int main() {
  weft::runtime rt{{.threads = 1}};
  rt.run(echo());
}

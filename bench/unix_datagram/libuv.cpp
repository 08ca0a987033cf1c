// Its datagrams may be of Unix sockets, too. It calls back for each; an answer is sent at once, and waits only where the
// system has no room.
#include <uv.h>

#include <array>
#include <cstddef>

#include "../harness/net/server.hpp"
#include "workload.hpp"

namespace {

std::array<char, bench::largest_datagram> buffer;

void lend(uv_handle_t*, std::size_t, uv_buf_t* into) { *into = uv_buf_init(buffer.data(), buffer.size()); }

void answer(uv_udp_t* by, ssize_t size, const uv_buf_t* got, const sockaddr*, unsigned) {
  if (size <= 0) return;
  const uv_buf_t data = uv_buf_init(got->base, static_cast<unsigned>(size));
  uv_udp_try_send(by, &data, 1, nullptr);  // it is connected
}

}  // namespace

int main() {
  uv_loop_t loop;
  uv_loop_init(&loop);
  uv_udp_t socket;
  uv_udp_init(&loop, &socket);
  uv_udp_open(&socket, bench::listening_socket);
  uv_udp_recv_start(&socket, lend, answer);
  uv_run(&loop, UV_RUN_DEFAULT);
}

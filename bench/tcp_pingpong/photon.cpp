// As in its example net-perf: a thread of its own for each connection, on epoll. Of several vCPUs each accepts for itself, all from
// the one socket that listens.
#include <photon/common/alog.h>
#include <photon/net/basic_socket.h>
#include <photon/photon.h>
#include <photon/thread/thread11.h>

#include <array>
#include <cstddef>
#include <thread>

#include "../harness/net/server.hpp"

namespace {

template <std::size_t Bytes>
void echo(int socket) {
  std::array<char, Bytes> buffer;
  for (;;) {
    const ssize_t size = photon::net::recv(socket, buffer.data(), buffer.size(), 0);
    if (size <= 0 || photon::net::send_n(socket, buffer.data(), static_cast<std::size_t>(size), MSG_NOSIGNAL) != size)
      break;
  }
  ::close(socket);
}

void serve(std::size_t bytes) {
  photon::init(photon::INIT_EVENT_EPOLL, photon::INIT_IO_NONE);
  for (;;) {
    const int socket = photon::net::accept(bench::listening_socket, nullptr, nullptr);
    if (socket < 0) continue;
    photon::thread* const made = bytes == bench::small_buffer
                                     ? photon::thread_create11(echo<bench::small_buffer>, socket)
                                     : photon::thread_create11(echo<bench::large_buffer>, socket);
    if (made == nullptr) ::close(socket);
  }
}

}  // namespace

int main(int count, char** words) {
  const auto options = bench::read_server_options(count, words);
  set_log_output(log_output_null);
  for (std::size_t i = 1; i < options.threads; ++i) std::thread{serve, options.buffer}.detach();
  serve(options.buffer);
}

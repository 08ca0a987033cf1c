#include <span>
#include <vector>
#include <weft/weft.hpp>

#include "../harness/net/server.hpp"
#include "workload.hpp"

namespace {

weft::task<> echo() {
  const auto socket = weft::net::datagram::adopt(bench::listening_socket);
  const weft::net::incoming_buffers buffers{bench::most_in_a_batch, bench::largest_datagram};
  std::vector<weft::net::outgoing> answers(bench::most_in_a_batch);
  for (;;) {
    const std::size_t count = co_await socket.receive_batch(buffers);
    for (std::size_t i = 0; i != count; ++i) answers[i] = {.data = buffers[i].bytes(), .to = buffers[i].from};
    for (std::span<const weft::net::outgoing> left{answers.data(), count}; !left.empty();)
      left = left.subspan(co_await socket.send_batch(left));
  }
}

}  // namespace

int main() {
  weft::runtime rt{{.threads = 1}};
  rt.run(echo());
}

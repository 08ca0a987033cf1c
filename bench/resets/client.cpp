// resets: 1000 connections, in each of which the server waits for the next request, are reset at once. One item is a reset:
// the server's processor time until it has closed its side, and waits for nothing but connections again. What the system does
// with a reset happens in the client's call, and is not in the clock. --size is the number of the server's threads. The
// servers are those of tcp_pingpong.
#include <array>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "../harness/net/client.hpp"
#include "../harness/net/server.hpp"
#include "../tcp_pingpong/workload.hpp"

namespace {

constexpr std::size_t resets = 1000;

std::vector<bench::connection> connect_all(const bench::server_process& server, std::size_t count) {
  std::vector<bench::connection> all;
  all.reserve(count);
  std::array<char, bench::message_bytes> message{};
  for (std::size_t i = 0; i != count; ++i) {
    const bench::connection& each = all.emplace_back(server, i);
    each.reset_when_closed();
    each.send(message.data(), message.size());
    each.receive(message.data(), message.size());
  }
  server.settle();
  return all;
}

}  // namespace

void bench::run(state& state) {
  using namespace std::chrono_literals;
  raise_descriptor_limit();
  const server_process server{state, {std::to_string(state.size()), std::to_string(large_buffer)}};
  const std::vector<connection> first = connect_all(server, 1);  // then it has all that it opens for itself
  const std::size_t before = server.sockets();
  state.measure(
      resets, before, [&] { return connect_all(server, resets); },
      [&](std::vector<connection>& all) {
        all.clear();
        for (int left = 5000; server.sockets() > before && left != 0; --left) std::this_thread::sleep_for(1ms);
        server.settle();
        return server.sockets();
      });
}

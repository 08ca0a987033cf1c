// accept: 64 clients connect at once and close their side at once; the server accepts each, reads to the end and closes it.
// Then the next 64. One item is a connection, and its time the server's processor time for it. --size is the number of the
// server's threads. The servers are those of tcp_pingpong.
#include <string>
#include <vector>

#include "../harness/net/client.hpp"
#include "../harness/net/server.hpp"

namespace {

constexpr std::size_t at_once = 64, connections = 1024;

std::size_t storm(const bench::server_process& server) {
  std::size_t ended = 0;
  for (std::size_t done = 0; done != connections; done += at_once) {
    std::vector<bench::connection> all;
    all.reserve(at_once);
    for (std::size_t i = 0; i != at_once; ++i) all.emplace_back(server, done + i).shut_down();
    for (const bench::connection& each : all) ended += each.has_ended();
  }
  return ended;
}

}  // namespace

void bench::run(state& state) {
  raise_descriptor_limit();
  const server_process server{state, {std::to_string(state.size()), std::to_string(large_buffer)}};
  state.measure(connections, connections, [&] { return storm(server); });
}

// unix_pingpong: tcp_pingpong over Unix stream sockets, whose server listens at a name that the system has chosen. The servers
// are those of tcp_pingpong, told so.
#include <algorithm>
#include <string>

#include "../harness/net/client.hpp"
#include "../harness/net/server.hpp"
#include "../tcp_pingpong/players.hpp"
#include "../tcp_pingpong/workload.hpp"

void bench::run(state& state) {
  const std::size_t count = state.size(), requests = std::max<std::size_t>(20 * count, 1000);
  need_descriptors(count);
  const server_process server{
      state, {"1", std::to_string(large_buffer), std::to_string(count), "unix"}, serves::unix_connections};
  players all{server, count};
  state.measure(static_cast<double>(requests), requests, [&] { return all.play(requests); });
}

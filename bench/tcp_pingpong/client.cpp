// In the clock: what the server's process does from a request's coming to its answer, the system's work in its calls
// included. Not in it: connecting, the client.
#include <algorithm>
#include <string>

#include "../harness/net/client.hpp"
#include "../harness/net/server.hpp"
#include "players.hpp"
#include "workload.hpp"

void bench::run(state& state) {
  constexpr std::size_t fewest = 1000, most = 20'000;  // in one call
  const std::size_t count = connections_of(state.size());
  need_descriptors(count);
  const server_process server{
      state, {std::to_string(server_threads_of(state.size())), std::to_string(large_buffer), std::to_string(count)}};
  players all{server, count};
  const std::size_t requests = std::clamp(20 * count, fewest, most);
  state.measure(static_cast<double>(requests), requests, [&] { return all.play(requests); });
}

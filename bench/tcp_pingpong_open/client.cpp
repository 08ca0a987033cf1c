// tcp_pingpong_open: the requests of tcp_pingpong, but sent when it is time for them (harness/net/open_loop.hpp); each
// connection sends in its turn. One item is a request, and its time the server's processor time for it. Reported besides: how
// long answers take; how many requests were answered in a second; and the client's processor time for one, which is the same
// work for all servers, but that more answers at once cost it less.
//
// --rate says how many requests there are in a second. The driver finds it at the start of its run, as half of what epoll by
// hand does without --rate, where this client is a closed loop; it is the same for all libraries. --size is the number of
// connections. The servers are those of tcp_pingpong.
#include <cstddef>
#include <string>

#include "../harness/net/client.hpp"
#include "../harness/net/in_turns.hpp"
#include "../harness/net/server.hpp"
#include "../tcp_pingpong/players.hpp"
#include "../tcp_pingpong/workload.hpp"

void bench::run(state& state) {
  const std::size_t count = connections_of(state.size());
  need_descriptors(count);
  const processors where = find_processors();
  stay_on(where.server);  // which it inherits
  const server_process server{state, {"1", std::to_string(large_buffer), std::to_string(count)}};
  stay_on(where.client);
  players all{server, count};
  play_in_turns(state, server, all, state.option("--rate", 0));
}

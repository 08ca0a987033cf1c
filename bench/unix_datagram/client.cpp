// In the clock: what the server's process does from a datagram's coming to its answer, the system's work in its calls included.
// Not in it: the client.
#include "../harness/net/client.hpp"
#include "../udp/exchange.hpp"

void bench::run(state& state) {
  server_process server{state, {}, serves::unix_datagrams};
  exchange{server.take_peer(), state.size()}.measure(state);
}

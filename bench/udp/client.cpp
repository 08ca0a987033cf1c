// In the clock: what the server's process does from a datagram's coming to its answer, the system's work in its calls included.
// Not in it: the client.
#include <string>

#include "../harness/net/client.hpp"
#include "../harness/net/server.hpp"
#include "exchange.hpp"

void bench::run(state& state) {
  const server_process server{state, {"1", std::to_string(largest_datagram)}, serves::datagrams};
  exchange{connect_datagrams(server), state.size()}.measure(state);
}

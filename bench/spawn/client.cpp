// spawn: /bin/true is run, again and again, each to its end. One item is a process, and its time the processor time of the program
// that starts it, without that of the process itself. --size is how many are there at once.
//
// The programs are given as servers are, see harness/net/server.hpp: THREADS BYTES AT-ONCE. Each is told over one connection
// how many processes to run, as eight bytes, and says how many have ended with 0.
#include <cstdint>
#include <string>

#include "../harness/net/client.hpp"
#include "../harness/net/server.hpp"

void bench::run(state& state) {
  const server_process starts{state, {"1", std::to_string(large_buffer), std::to_string(state.size())}};
  const connection to{starts};
  const std::uint64_t processes = 500;
  state.measure(static_cast<double>(processes), processes, [&] {
    to.send(&processes, sizeof processes);
    std::uint64_t right = 0;
    to.receive(&right, sizeof right);
    return right;
  });
  state.report("own KiB", static_cast<double>(starts.own_bytes()) / 1024);
}

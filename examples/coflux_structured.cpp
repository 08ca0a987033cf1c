// Coflux's first example, structured concurrency, in weft: three connections, each of which reads, then writes, on a pool.
// Nobody passes an environment: what is below the scope inherits its executor. The scope is left when all have ended.
#include <array>
#include <chrono>
#include <cstdio>
#include <string>
#include <weft/weft.hpp>

namespace w = weft;
using namespace std::chrono_literals;

w::task<std::string> read_request(int client) {
  co_await w::sleep_for(2ms + client * 1ms);
  co_return "Hello from client " + std::to_string(client);
}

w::task<> write_response(std::string& to, std::string response) {
  co_await w::sleep_for(1ms);
  to = std::move(response);
}

w::task<> handle_connection(int client, std::string& peer) {
  std::string request = co_await read_request(client);
  co_await write_response(peer, request + " [processed by server]");
}

int main() {
  w::pool workers{{.threads = 4}};
  std::array<std::string, 3> peers;
  auto server = [&](w::scope& connections) -> w::task<> {
    for (int client = 1; client <= 3; ++client)
      connections.fork(handle_connection, client, std::ref(peers[client - 1]));
    co_return;
  };
  w::sync_wait(w::with_scope({.executor = &workers}, server));
  for (const std::string& received : peers) std::printf("%s\n", received.c_str());
}

// By receive(), which lends a buffer for what has come: a connection that waits has none.
#include <weft/weft.hpp>

#include "../harness/net/server.hpp"

namespace {

weft::task<> echo(weft::net::stream peer) {
  try {
    for (;;) {
      const weft::net::lent_buffer got = co_await peer.receive();
      if (got.empty()) co_return;
      co_await peer.write(got);
    }
  } catch (const weft::error&) {  // ends this connection, and no other one
  }
}

weft::task<> serve(weft::scope& connections) {
  const auto at = weft::net::listener::adopt(bench::listening_socket);
  for (;;) connections.fork(echo(co_await at.accept()));
}

}  // namespace

int main(int count, char** words) {
  const auto options = bench::read_server_options(count, words);
  weft::runtime rt{{.threads = static_cast<unsigned>(options.threads)}};
  rt.run(weft::with_scope(serve));
}

#include <array>
#include <span>
#include <weft/weft.hpp>

#include "../harness/net/server.hpp"

namespace {

template <std::size_t Bytes>
weft::task<> echo(weft::net::stream peer) {
  std::array<std::byte, Bytes> buffer;
  try {
    while (const std::size_t size = co_await peer.read(buffer)) co_await peer.write(std::span{buffer}.first(size));
  } catch (const weft::error&) {  // ends this connection, and no other one
  }
}

template <std::size_t Bytes>
weft::task<> serve(weft::scope& connections) {
  const auto at = weft::net::listener::adopt(bench::listening_socket);
  for (;;) connections.fork(echo<Bytes>(co_await at.accept()));
}

}  // namespace

int main(int count, char** words) {
  const auto options = bench::read_server_options(count, words);
  weft::runtime rt{{.threads = static_cast<unsigned>(options.threads)}};
  if (options.buffer == bench::small_buffer)
    rt.run(weft::with_scope(serve<bench::small_buffer>));
  else
    rt.run(weft::with_scope(serve<bench::large_buffer>));
}

#include "workload.hpp"

#include <array>
#include <span>
#include <weft/weft.hpp>

#include "../harness/net/server.hpp"

namespace {

weft::task<> talk(const weft::net::stream& peer) {
  std::array<char, bench::large_buffer> buffer;
  bench::requests all;
  while (const std::size_t size = co_await peer.read(std::as_writable_bytes(std::span{buffer}))) {
    int complete = all.feed({buffer.data(), size});
    if (complete < 0) co_return;
    for (; complete != 0; --complete) co_await peer.write(bench::hello);
  }
}

weft::task<> serve_one(weft::net::stream peer) {
  try {
    co_await talk(peer);
  } catch (const weft::error&) {  // ends this connection, and no other one
  }
}

weft::task<> serve(weft::scope& connections) {
  const auto at = weft::net::listener::adopt(bench::listening_socket);
  for (;;) connections.fork(serve_one(co_await at.accept()));
}

}  // namespace

int main(int count, char** words) {
  const auto options = bench::read_server_options(count, words);
  weft::runtime rt{{.threads = static_cast<unsigned>(options.threads)}};
  rt.run(weft::with_scope(serve));
}

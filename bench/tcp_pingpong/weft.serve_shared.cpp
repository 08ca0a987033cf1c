// By net::serve from a listener a thread, all on one port (SO_REUSEPORT): the first is the one that was inherited.
#include <array>
#include <span>
#include <vector>
#include <weft/weft.hpp>

#include "../harness/net/server.hpp"

namespace {

template <std::size_t Bytes>
weft::task<> echo(weft::net::stream peer) {
  std::array<std::byte, Bytes> buffer;
  while (const std::size_t size = co_await peer.read(buffer)) co_await peer.write(std::span{buffer}.first(size));
}

}  // namespace

int main(int count, char** words) {
  const auto options = bench::read_server_options(count, words);
  weft::runtime rt{{.threads = static_cast<unsigned>(options.threads)}};
  const auto serves = [&]() -> weft::task<> {
    std::vector<weft::net::listener> at;
    at.push_back(weft::net::listener::adopt(bench::listening_socket));
    while (at.size() < options.threads) {
      auto another = weft::net::listen({.backlog = 4096, .reuse_port = true}, at.front().local());
      at.push_back(co_await std::move(another));
    }
    if (options.buffer == bench::small_buffer)
      co_await weft::net::serve(std::move(at), echo<bench::small_buffer>);
    else
      co_await weft::net::serve(std::move(at), echo<bench::large_buffer>);
  };
  rt.run(serves());
}

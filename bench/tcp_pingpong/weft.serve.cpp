// By net::serve, where weft.cpp has an accept loop of its own.
#include <array>
#include <span>
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
    auto at = weft::net::listener::adopt(bench::listening_socket);
    if (options.buffer == bench::small_buffer)
      co_await weft::net::serve(std::move(at), echo<bench::small_buffer>);
    else
      co_await weft::net::serve(std::move(at), echo<bench::large_buffer>);
  };
  rt.run(serves());
}

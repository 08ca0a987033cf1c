// An echo server: `example_echo 7777`, then `nc 127.0.0.1 7777`. It ends at Ctrl-C.
#include <array>
#include <charconv>
#include <cstdio>
#include <string_view>
#include <utility>
#include <weft/weft.hpp>

namespace w = weft;
using namespace std::literals;

w::task<> echo(w::net::stream peer) {
  std::array<std::byte, 4096> buffer;
  while (const std::size_t size = co_await peer.read(buffer)) co_await peer.write(std::span{buffer}.first(size));
}

w::task<> serve(std::uint16_t port) {
  w::net::listener at = co_await w::net::listen(w::net::endpoint{"127.0.0.1", port});
  std::printf("listening on %s\n", at.local().to_string().c_str());
  std::fflush(stdout);
  co_await w::net::serve({.grace = 1s}, std::move(at), echo);  // a connection that breaks ends no other one
}

int main(int count, char** arguments) {
  std::uint16_t port = 0;  // 0: the system chooses one
  if (count > 1) {
    const std::string_view text = arguments[1];
    std::from_chars(text.data(), text.data() + text.size(), port);
  }
  return w::run_main(w::when_any(serve(port), w::interrupted()));
}

// An echo server: `example_echo 7777`, then `nc 127.0.0.1 7777`. It ends when its standard input does.
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdio>
#include <string_view>
#include <weft/weft.hpp>

namespace w = weft;

w::task<> echo(w::net::stream peer) {
  std::array<std::byte, 4096> buffer;
  try {
    while (const std::size_t size = co_await peer.read(buffer)) co_await peer.write(std::span{buffer}.first(size));
  } catch (const w::error& lost) {
    std::fprintf(stderr, "%s\n", lost.what());  // a connection that breaks ends here, and no other one
  }
}

w::task<> accept_all(w::scope& connections, const w::net::listener& at) {
  for (;;) connections.fork(echo(co_await at.accept()));
}

w::task<> end_of_input() {
  std::array<char, 256> ignored;
  do co_await w::net::ready(STDIN_FILENO, w::net::readiness::readable);
  while (::read(STDIN_FILENO, ignored.data(), ignored.size()) > 0);
}

w::task<> serve(std::uint16_t port) {
  const w::net::listener at = co_await w::net::listen(w::net::endpoint{"127.0.0.1", port});
  std::printf("listening on %s\n", at.local().to_string().c_str());
  std::fflush(stdout);
  auto connections = [&](w::scope& inside) -> w::task<> {
    inside.fork(accept_all(inside, at));
    co_await end_of_input();
    inside.request_stop();
  };
  co_await w::with_scope(connections);
}

int main(int count, char** arguments) {
  std::uint16_t port = 0;  // 0: the system chooses one
  if (count > 1) {
    const std::string_view text = arguments[1];
    std::from_chars(text.data(), text.data() + text.size(), port);
  }
  return w::run_main(serve(port));
}

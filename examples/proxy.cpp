// Passes connections on to another server: `example_proxy 127.0.0.1:80 7777`, then `curl http://127.0.0.1:7777/`. It ends when
// its standard input does, and its connections with it.
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdio>
#include <string_view>
#include <weft/weft.hpp>

namespace w = weft;

// One direction, up to its end, of which the other side is told; it may still have much to say.
w::task<> pass_on(const w::net::stream& from, const w::net::stream& to) {
  co_await w::io::copy(from, to);
  to.shutdown();
}

w::task<> serve_one(w::net::stream client, w::net::endpoint target) {
  try {
    const w::net::stream server = co_await w::net::connect(target);
    co_await w::when_all(pass_on(client, server),
                         pass_on(server, client));  // where one fails, the other one is stopped
  } catch (const w::error& lost) {
    std::fprintf(stderr, "%s\n", lost.what());  // a connection that breaks ends here, and no other one
  }
}

w::task<> accept_all(w::scope& connections, const w::net::listener& at, w::net::endpoint target) {
  for (;;) connections.fork(serve_one(co_await at.accept(), target));
}

w::task<> end_of_input() {
  std::array<char, 256> ignored;
  do co_await w::net::ready(STDIN_FILENO, w::net::readiness::readable);
  while (::read(STDIN_FILENO, ignored.data(), ignored.size()) > 0);
}

w::task<> serve(w::net::endpoint target, std::uint16_t port) {
  const w::net::listener at = co_await w::net::listen(w::net::endpoint{"127.0.0.1", port});
  std::printf("listening on %s\n", at.local().to_string().c_str());
  std::fflush(stdout);
  auto connections = [&](w::scope& inside) -> w::task<> {
    inside.fork(accept_all(inside, at, target));
    co_await end_of_input();
    inside.request_stop();
  };
  co_await w::with_scope(connections);
}

int main(int count, char** arguments) {
  if (count < 2) {
    std::fputs("usage: example_proxy TARGET:PORT [PORT]\n", stderr);
    return 2;
  }
  std::uint16_t port = 0;  // 0: the system chooses one
  if (count > 2) {
    const std::string_view text = arguments[2];
    std::from_chars(text.data(), text.data() + text.size(), port);
  }
  try {
    return w::run_main(serve(w::net::endpoint::parse(arguments[1]), port));
  } catch (const w::error& wrong) {
    std::fprintf(stderr, "%s\n", wrong.what());
    return 2;
  }
}

// An echo server by TLS: `example_tls_echo chain.pem key.pem 7777`, then `openssl s_client -connect 127.0.0.1:7777`. The line "bye"
// ends a connection, Ctrl-C the server. At SIGHUP it reads its certificate anew.
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <weft/tls.hpp>
#include <weft/weft.hpp>

namespace w = weft;
using namespace std::literals;

w::task<> echo(w::tls::stream<> peer) {
  w::io::buffered_reader in{peer};
  w::io::buffered_writer out{peer};
  while (const std::optional<std::string> line = co_await in.read_line()) {
    co_await out.print(*line, "\n");
    co_await out.flush();
    if (*line == "bye") break;
  }
  co_await peer.shutdown();
}

w::task<> serve(const w::tls::server_context& by, std::uint16_t port) {
  w::net::listener at = co_await w::net::listen(w::net::endpoint{"127.0.0.1", port});
  std::printf("listening on %s\n", at.local().to_string().c_str());
  std::fflush(stdout);
  co_await w::tls::serve({.net = {.grace = 1s}}, by, std::move(at), echo);
}

// Connections that are there go on with the old one.
w::task<> reload(const w::tls::server_context& its, const w::tls::certificate& certificate) {
  w::signals hangups{SIGHUP};
  for (;;) {
    co_await hangups.next();
    try {
      its.reload(certificate);
    } catch (const w::error& failed) {
      std::fprintf(stderr, "%s\n", failed.what());
    }
  }
}

int main(int count, char** arguments) {
  if (count < 3) {
    std::fprintf(stderr, "usage: %s CHAIN KEY [PORT]\n", arguments[0]);
    return 2;
  }
  std::uint16_t port = 0;  // 0: the system chooses one
  if (count > 3) {
    const std::string_view text = arguments[3];
    std::from_chars(text.data(), text.data() + text.size(), port);
  }
  const w::tls::certificate certificate{.chain = w::tls::pem::file(arguments[1]),
                                        .key = w::tls::pem::file(arguments[2])};
  try {
    const w::tls::server_context context{{.certificate = certificate}};
    return w::run_main(w::when_any(serve(context, port), reload(context, certificate), w::interrupted()));
  } catch (const w::error& failed) {
    std::fprintf(stderr, "%s\n", failed.what());
    return 1;
  }
}

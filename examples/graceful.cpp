// A server that ends without losing an answer: `example_graceful 8080`, then `curl http://127.0.0.1:8080/`, and SIGTERM or
// Ctrl-C meanwhile. It answers what it has begun, closes connections between two requests, and says what it did.
#include <charconv>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <weft/weft.hpp>

namespace w = weft;
using namespace std::literals;

// A request is what comes up to an empty line. Its answer takes a while. A request may be complete at the instant in which
// draining begins, so what counts is whether there is one, and not which of the two was first.
w::task<> answer(w::net::stream peer) {
  w::io::buffered_reader in{peer};
  for (;;) {
    std::optional<std::string> request;
    const auto reads = [&]() -> w::task<> { request = co_await in.read_until("\r\n\r\n"sv); };
    auto either = w::when_any(reads(), w::net::draining());
    co_await std::move(either);
    if (!request) co_return;  // the server drains, or the client has gone
    co_await peer.write("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"sv);
    co_await w::sleep_for(300ms);
    co_await peer.write("done\n"sv);
  }
}

w::task<> serve(std::uint16_t port, w::net::server_stats& stats) {
  w::net::listener at = co_await w::net::listen(w::net::endpoint{"127.0.0.1", port});
  std::printf("listening on %s\n", at.local().to_string().c_str());
  std::fflush(stdout);
  w::net::serve_options options{.max_connections = 1000, .idle_timeout = 1min, .grace = 1min, .stats = &stats};
  co_await w::net::serve(options, std::move(at), answer);
}

int main(int count, char** arguments) {
  std::uint16_t port = 0;  // 0: the system chooses one
  if (count > 1) {
    const std::string_view text = arguments[1];
    std::from_chars(text.data(), text.data() + text.size(), port);
  }
  w::net::server_stats stats;
  const int status = w::run_main(w::when_any(serve(port, stats), w::interrupted()));
  std::printf("%d connections, of which %d were cut off\n", static_cast<int>(stats.accepted()),
              static_cast<int>(stats.cut()));
  return status;
}

// Says hello by HTTP/1.1, and keeps connections: `example_http_hello 8080`, then `curl http://127.0.0.1:8080/`. It reads no
// more of a request than where its head ends, so it is for requests without a body. It ends when its standard input does.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <string_view>
#include <weft/weft.hpp>

namespace w = weft;
using namespace std::literals;

constexpr std::string_view hello =
    "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 13\r\n\r\nHello, world\n";
constexpr std::string_view too_large = "HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Length: 0\r\n\r\n";

w::task<> talk(const w::net::stream& peer) {
  std::array<char, 8192> buffer;
  std::size_t filled = 0;
  for (;;) {
    const std::string_view text{buffer.data(), filled};
    if (const std::size_t end = text.find("\r\n\r\n"); end != text.npos) {
      co_await peer.write(hello);
      std::copy(buffer.begin() + static_cast<std::ptrdiff_t>(end + 4),
                buffer.begin() + static_cast<std::ptrdiff_t>(filled),
                buffer.begin());  // of the next request, of who sends several at once
      filled -= end + 4;
      continue;
    }
    if (filled == buffer.size()) co_return co_await peer.write(too_large);
    const std::size_t got = co_await peer.read(std::as_writable_bytes(std::span{buffer}.subspan(filled)));
    if (got == 0) co_return;
    filled += got;
  }
}

// A connection ends after a minute, or when it breaks, and no other one with it.
w::task<> serve_one(w::net::stream peer) {
  const auto ended = co_await w::as_result(w::timeout(1min, talk(peer)));
  if (ended.error() && ended.error() != w::errc::timed_out)
    std::fprintf(stderr, "%s\n", ended.error().message().c_str());
}

w::task<> accept_all(w::scope& connections, const w::net::listener& at) {
  for (;;) connections.fork(serve_one(co_await at.accept()));
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

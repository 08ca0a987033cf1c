// Says hello by HTTP/1.1, and keeps connections: `example_http_hello 8080`, then `curl http://127.0.0.1:8080/`. It reads no
// more of a request than where its head ends, so it is for requests without a body. It ends at Ctrl-C.

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <string_view>
#include <utility>
#include <weft/weft.hpp>

namespace w = weft;
using namespace std::literals;

constexpr std::string_view hello =
    "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 13\r\n\r\nHello, world\n";
constexpr std::string_view too_large = "HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Length: 0\r\n\r\n";

w::task<> talk(w::net::stream peer) {
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
    const auto room = std::as_writable_bytes(std::span{buffer}.subspan(filled));
    const auto next = co_await w::select(w::on(peer.read(room)), w::on(w::net::draining()));
    if (next.index == 1 || std::get<0>(next.value) == 0) co_return;  // the server ends, or the client has
    filled += std::get<0>(next.value);
  }
}

w::task<> serve(std::uint16_t port) {
  w::net::listener at = co_await w::net::listen(w::net::endpoint{"127.0.0.1", port});
  std::printf("listening on %s\n", at.local().to_string().c_str());
  std::fflush(stdout);
  co_await w::net::serve({.idle_timeout = 1min}, std::move(at), talk);
}

int main(int count, char** arguments) {
  std::uint16_t port = 0;  // 0: the system chooses one
  if (count > 1) {
    const std::string_view text = arguments[1];
    std::from_chars(text.data(), text.data() + text.size(), port);
  }
  return w::run_main(w::when_any(serve(port), w::interrupted()));
}

// A file server: `example_file_server DIRECTORY 7777`, then `echo NAME | nc 127.0.0.1 7777`. A client sends names, a line each, and
// gets for each a line with the size, and then so many bytes of that file; or `no: WHY`. It ends at Ctrl-C.
#include <charconv>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <weft/weft.hpp>

namespace w = weft;
using namespace std::literals;

// Only what lies in the directory itself: no other one, and nothing that is hidden.
bool is_allowed(std::string_view name) {
  return !name.empty() && name.find('/') == name.npos && !name.starts_with('.');
}

w::task<> send(const w::net::stream& peer, std::string path) {
  const auto opened = co_await w::as_result(w::file::open(path));
  if (!opened) {
    const std::string answer = "no: " + opened.error().message() + "\n";
    co_await peer.write(answer);
    co_return;
  }
  const w::file_status known = co_await opened->stat();
  if (!known.is_regular) {
    co_await peer.write("no: not a file\n"sv);
    co_return;
  }
  const std::string head = std::to_string(known.size) + "\n";
  co_await peer.write(head);
  const std::uint64_t sent = co_await peer.send_file(opened->native_handle(), 0, known.size);
  if (sent != known.size) peer.shutdown();  // it was cut meanwhile: the client got fewer than it was told
}

w::task<> serve(std::string directory, std::uint16_t port) {
  w::net::listener at = co_await w::net::listen(w::net::endpoint{"127.0.0.1", port});
  std::printf("listening on %s\n", at.local().to_string().c_str());
  std::fflush(stdout);
  const auto answer = [&](w::net::stream peer) -> w::task<> {
    w::io::buffered_reader in{peer};
    while (const auto name = co_await in.read_line(256)) {
      if (is_allowed(*name))
        co_await send(peer, directory + "/" + *name);
      else
        co_await peer.write("no: not here\n"sv);
    }
  };
  co_await w::net::serve({.grace = 1s}, std::move(at), answer);
}

int main(int count, char** arguments) {
  std::uint16_t port = 0;  // 0: the system chooses one
  if (count > 2) {
    const std::string_view text = arguments[2];
    std::from_chars(text.data(), text.data() + text.size(), port);
  }
  return w::run_main(w::when_any(serve(count > 1 ? arguments[1] : ".", port), w::interrupted()));
}

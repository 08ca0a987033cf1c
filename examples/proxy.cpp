// Passes connections on to another server: `example_proxy 127.0.0.1:80 7777`, then `curl http://127.0.0.1:7777/`. It ends at
// Ctrl-C, and its connections with it.
#include <array>
#include <charconv>
#include <cstdio>
#include <exception>
#include <string_view>
#include <utility>
#include <weft/weft.hpp>

namespace w = weft;
using namespace std::literals;

// One direction, up to its end, of which the other side is told; it may still have much to say.
w::task<> pass_on(const w::net::stream& from, const w::net::stream& to) {
  co_await w::io::copy(from, to);
  to.shutdown();
}

w::task<> serve(w::net::endpoint target, std::uint16_t port) {
  w::net::listener at = co_await w::net::listen(w::net::endpoint{"127.0.0.1", port});
  std::printf("listening on %s\n", at.local().to_string().c_str());
  std::fflush(stdout);
  const auto handle = [target](w::net::stream client) -> w::task<> {
    const w::net::stream server = co_await w::net::connect(target);
    co_await w::when_all(pass_on(client, server),
                         pass_on(server, client));  // where one fails, the other one is stopped
  };
  const auto print = [](const w::net::endpoint& client, const std::exception_ptr& failure) {
    try {
      std::rethrow_exception(failure);
    } catch (const std::exception& known) {
      std::fprintf(stderr, "%s: %s\n", client.to_string().c_str(), known.what());
    } catch (...) {  // what leaves this function ends the program
      std::fprintf(stderr, "%s: not a std::exception\n", client.to_string().c_str());
    }
  };
  co_await w::net::serve({.grace = 1s, .on_error = print}, std::move(at), handle);
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
    return w::run_main(w::when_any(serve(w::net::endpoint::parse(arguments[1]), port), w::interrupted()));
  } catch (const w::error& wrong) {
    std::fprintf(stderr, "%s\n", wrong.what());
    return 2;
  }
}

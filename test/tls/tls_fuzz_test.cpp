// Bytes that somebody in between has changed, cut, doubled or made up, in both directions of a handshake and of a session behind it:
// whatever comes, each side gives a beginning of what the other one has written, or an error.
#include <weft/tls.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <weft/combine.hpp>
#include <weft/io.hpp>
#include <weft/task.hpp>
#include <weft/test.hpp>
#include <weft/timed.hpp>

#include "support/fuzz.hpp"
#include "tls/certificates.hpp"
#include "tls/pairs.hpp"

namespace {

using namespace std::chrono_literals;
using weft::task;
constexpr std::string_view question = "a question of the client's",
                           answer = "what the server says to that, in some more words";

const weft::tls::client_context& client() {
  static const weft::tls::client_context one{{.trust = test::root().trusted()}};
  return one;
}
const weft::tls::server_context& server() {
  static const weft::tls::server_context one = test::server_of(test::root());
  return one;
}

// Passes on what comes, but for what it changes from its `after`th byte on.
task<> pass_on(weft::io::pipe_reader from, weft::io::pipe_writer to, test::choices& chosen, std::size_t after) {
  std::array<std::byte, 512> buffer;
  std::size_t passed = 0;
  for (;;) {
    auto reading = as_result(from.read(buffer));
    const auto got = co_await std::move(reading);
    if (!got.has_value() || got.value() == 0) co_return;
    std::vector<std::byte> piece(buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(got.value()));
    passed += piece.size();
    for (int i = 0; i != 2 && passed > after && chosen.are_left() && !piece.empty(); ++i) {
      const std::size_t at = chosen.up_to(std::min<std::size_t>(piece.size() - 1, 255));
      const auto byte = static_cast<std::byte>(chosen.up_to(255));
      switch (chosen.up_to(6)) {
        case 0: piece[at] = byte; break;
        case 1: piece[at] ^= std::byte{1} << (static_cast<unsigned>(byte) & 7U); break;
        case 2: piece.resize(at); break;
        case 3: piece.insert(piece.begin() + static_cast<std::ptrdiff_t>(at), byte); break;
        case 4: {
          const std::vector<std::byte> twice = piece;
          piece.insert(piece.end(), twice.begin(), twice.end());
          break;
        }
        case 5: co_return;  // the end of the connection, in this direction
        default: break;
      }
    }
    if (piece.empty()) continue;
    auto writing = as_result(to.write(piece));
    if (!(co_await std::move(writing)).has_value()) co_return;
  }
}

// Its own side is closed when it has ended, so none waits for it.
template <class Begin>
task<> talk(Begin begin, std::string_view says, std::string& got) {
  try {
    auto beginning = begin();
    const auto one = co_await std::move(beginning);
    co_await one.write(says);
    co_await one.shutdown();
    std::array<std::byte, 16> buffer;
    while (const std::size_t size = co_await one.read(buffer))
      got.append(reinterpret_cast<const char*>(buffer.data()), size);
  } catch (const weft::error&) {
  }
}

WEFT_FUZZ(what_is_between_two_sides, 400, 48) {
  const auto play = [&]() -> task<> {
    test::duplexes left = test::pipes(64 * 1024), right = test::pipes(64 * 1024);
    const std::size_t after = chosen.up_to(1) == 0 ? chosen.up_to(255) * 8 : 0;
    std::string to_client, to_server;
    auto both = weft::when_all(
        talk([&] { return weft::tls::connect(client(), std::move(left.here), "here.test"); }, question, to_client),
        talk([&] { return weft::tls::accept(server(), std::move(right.here)); }, answer, to_server),
        pass_on(std::move(left.there.in), std::move(right.there.out), chosen, after),
        pass_on(std::move(right.there.in), std::move(left.there.out), chosen, after));
    // Where a length was changed, both sides wait for what never comes; time passes only then.
    auto in_time = weft::as_result(weft::timeout(1s, std::move(both)));
    const auto how = co_await std::move(in_time);
    test::must(how.has_value() || how.error() == weft::errc::timed_out, "fails by " + how.error().message());
    test::must(answer.starts_with(to_client), "the client was given something else: " + to_client);
    test::must(question.starts_with(to_server), "the server was given something else: " + to_server);
  };
  weft::test::run(play);
}

}  // namespace

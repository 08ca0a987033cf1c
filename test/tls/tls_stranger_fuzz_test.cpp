// What somebody sends who knows nothing of a session's keys, to a server and to a client: no handshake is done by that, and none hangs.
#include <weft/tls.hpp>

#include <string>
#include <string_view>
#include <utility>
#include <weft/task.hpp>

#include "support/fuzz.hpp"
#include "tls/certificates.hpp"
#include "tls/pairs.hpp"

namespace {

using weft::task;

const weft::tls::client_context& client() {
  static const weft::tls::client_context one{{.trust = test::root().trusted()}};
  return one;
}
const weft::tls::server_context& server() {
  static const weft::tls::server_context one = test::server_of(test::root());
  return one;
}

WEFT_FUZZ(what_a_stranger_sends, 2000, 400) {
  const auto play = [&]() -> task<> {
    test::duplexes ends = test::pipes(64 * 1024);
    const bool is_server = chosen.one_in(2);
    std::string sent;
    if (chosen.one_in(2)) sent = std::string_view{"\x16\x03\x01\x01\x00\x01\x00\x00\xfc\x03\x03", 11};
    while (chosen.are_left()) sent += static_cast<char>(chosen.up_to(255));
    co_await ends.there.out.write(sent);
    ends.there.out.close();
    const auto ended = [](auto beginning) -> task<bool> {
      auto how = co_await as_result(std::move(beginning));
      co_return !how.has_value();
    };
    auto judged = is_server ? ended(weft::tls::accept(server(), std::move(ends.here)))
                            : ended(weft::tls::connect(client(), std::move(ends.here), "here.test"));
    const bool has_failed = co_await std::move(judged);
    test::must(has_failed, "a handshake with nobody was done");
  };
  weft::sync_wait(play());
}

}  // namespace

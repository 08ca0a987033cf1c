// What a server's handshakes are limited by: their number at once, their time, and the versions that a side allows.
#include <weft/tls.hpp>

#include <unistd.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>
#include <weft/combine.hpp>
#include <weft/race.hpp>
#include <weft/runtime.hpp>
#include <weft/test.hpp>
#include <weft/timed.hpp>

#include "net/sockets.hpp"
#include "support/weft_test.hpp"
#include "tls/certificates.hpp"
#include "tls/pairs.hpp"

namespace {

using namespace std::chrono_literals;
using test::client_of;
using test::credentials;
using test::openssl_peer;
using test::root;
using test::server_of;
using weft::as_result;
using weft::io_backend;
using weft::task;
using weft::net::endpoint;
using weft::net::server_stats;
using weft::tls::client_context;
using weft::tls::errc;
using weft::tls::server_context;
using weft::tls::version;

// ---- their number and time ------------------------------------------------------------------------------------------------

// On virtual time, which does not pass while a handshake can go on: so one that is late waits for somebody.
class handshakes : public testing::TestWithParam<io_backend> {
 protected:
  void SetUp() override {
    const weft::runtime here{{.threads = 1, .io = GetParam()}};
    if (here.backend() != GetParam()) GTEST_SKIP() << "no rings here";
  }
  static task<> answer(weft::tls::stream<> peer) {
    std::array<std::byte, 8> buffer;
    const std::size_t got = co_await peer.read(buffer);
    co_await peer.write(std::span<const std::byte>{buffer}.first(got));
    co_await peer.shutdown();
  }
  // Whether the server answers within a minute.
  static task<bool> is_answered(endpoint where) {
    const auto asks = [where]() -> task<std::string> {
      weft::net::stream raw = co_await weft::net::connect(where);
      const auto to = co_await weft::tls::connect(client_of(root()), std::move(raw), "here.test");
      co_await to.write("hello");
      co_return co_await test::read_to_end(to);
    };
    const auto got = co_await as_result(weft::timeout(1min, asks()));
    if (!got.has_value()) {
      EXPECT_EQ(got.error(), weft::errc::timed_out);
      co_return false;
    }
    EXPECT_EQ(*got, "hello");
    co_return true;
  }
  // `clients` is given the address of a server.
  template <class Clients>
  static void run(weft::tls::serve_options options, Clients clients) {
    weft::test::run({.io = GetParam()}, [&]() -> task<> {
      const endpoint where = endpoint::unix_abstract("weft-test-limits-" + std::to_string(::getpid()));
      weft::net::listener at = co_await weft::net::listen(where);
      auto both = weft::when_any(weft::tls::serve(options, server_of(root()), std::move(at), answer), clients(where));
      co_await std::move(both);
    });
  }
};
INSTANTIATE_TEST_SUITE_P(, handshakes, testing::Values(io_backend::epoll, io_backend::uring),
                         [](const auto& one) { return one.param == io_backend::epoll ? "by_epoll" : "by_a_ring"; });

TEST_P(handshakes, are_no_more_at_once_than_is_allowed_but_all_are_accepted) {
  server_stats stats;
  weft::tls::serve_options options{.net = {.handshake_timeout = 24h, .stats = &stats}, .max_handshakes = 2};
  run(options, [&](endpoint where) -> task<> {
    std::vector<weft::net::stream> silent;
    silent.push_back(co_await weft::net::connect(where));
    EXPECT_TRUE(co_await is_answered(where)) << "there is another place";
    for (int i = 0; i != 4; ++i) silent.push_back(co_await weft::net::connect(where));
    EXPECT_FALSE(co_await is_answered(where)) << "both places were taken";
    EXPECT_EQ(stats.accepted(), 7U);
    EXPECT_EQ(stats.active(), 6U) << "who waits for a place finds out later that its client is gone";
    silent.clear();
    EXPECT_TRUE(co_await is_answered(where));
    EXPECT_EQ(stats.late(), 0U);
  });
}

TEST_P(handshakes, that_are_not_over_in_ten_seconds_are_late_by_default) {
  server_stats stats;
  run({.net = {.stats = &stats}}, [&](endpoint where) -> task<> {
    const weft::net::stream silent = co_await weft::net::connect(where);
    EXPECT_EQ(co_await test::read_all(silent), "");
    EXPECT_EQ(weft::test::elapsed(), 10s);
    EXPECT_EQ(stats.late(), 1U);
  });
}

// ---- versions -------------------------------------------------------------------------------------------------------------

struct ended {
  std::error_code how;
  std::string version;
};
template <class Handshake>
task<ended> end_of(Handshake handshake) {
  auto got = co_await as_result(std::move(handshake));
  ended all{got.error(), {}};
  if (got.has_value()) {
    all.version = got->version();
    got->close();
  }
  co_return all;
}
// With a peer by OpenSSL that knows no version above `most`.
task<ended> connects(version least, int most) {
  const credentials its = root().issue();
  test::with_number raw = test::connected_to_number();
  const std::jthread peer{
      [&its, most, number = raw.there] { static_cast<void>(openssl_peer{number, &its, most}.handshake()); }};
  const client_context client{{.trust = root().trusted(), .least = least}};
  co_return co_await end_of(weft::tls::connect(client, std::move(raw.here), "here.test"));
}
task<ended> accepts(version least, int most) {
  const credentials mine = root().issue();
  test::with_number raw = test::connected_to_number();
  const std::jthread peer{
      [most, number = raw.there] { static_cast<void>(openssl_peer{number, nullptr, most}.handshake()); }};
  const server_context server{{.certificate = mine.shown(), .least = least}};
  co_return co_await end_of(weft::tls::accept(server, std::move(raw.here)));
}

WEFT_TEST("versions: a side refuses what is older than it allows, and says why") {
  for (const auto handshake : {connects, accepts}) {
    for (const auto& [least, most] :
         {std::pair{version::tls13, TLS1_2_VERSION}, std::pair{version::tls12, TLS1_1_VERSION}}) {
      const ended refused = co_await handshake(least, most);
      EXPECT_EQ(refused.how, errc::protocol_version) << refused.how.message();
    }
    const ended taken = co_await handshake(version::tls12, TLS1_2_VERSION);
    EXPECT_EQ(taken.version, "TLSv1.2") << taken.how.message();
    const ended newest = co_await handshake(version::tls13, TLS1_3_VERSION);
    EXPECT_EQ(newest.version, "TLSv1.3") << newest.how.message();
  }
}

}  // namespace

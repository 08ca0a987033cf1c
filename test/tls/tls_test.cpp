// TLS between a client and a server of this process: what they agree on, what they refuse, and how a session ends.
//
// Long because each thing that is agreed on, or refused, is a test of its own.
#include <weft/tls.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>
#include <weft/combine.hpp>
#include <weft/fiber.hpp>
#include <weft/io.hpp>
#include <weft/race.hpp>
#include <weft/runtime.hpp>
#include <weft/scope.hpp>

#include "net/sockets.hpp"
#include "support/weft_test.hpp"
#include "tls/certificates.hpp"
#include "tls/pairs.hpp"

namespace {

using namespace std::chrono_literals;
using test::authority;
using test::bytes;
using test::client_of;
using test::connected_by_tcp;
using test::connection;
using test::credentials;
using test::handshake;
using test::pair_of;
using test::read_to_end;
using test::root;
using test::server_of;
using weft::as_result;
using weft::task;
using weft::tls::client_certificates;
using weft::tls::client_context;
using weft::tls::errc;
using weft::tls::pem;
using weft::tls::server_context;
using weft::tls::stream;
using weft::tls::version;

static_assert(weft::io::reader<stream<>> && weft::io::writer<stream<>>);
static_assert(weft::io::reader<const stream<>&>);
static_assert(std::is_nothrow_move_constructible_v<stream<>> && !std::is_copy_constructible_v<stream<>>);

// ---- a session ------------------------------------------------------------------------------------------------------------

WEFT_TEST("tls: what is written comes, in both directions, up to the end of each") {
  auto [here, there] = co_await handshake(client_of(root()), server_of(root()));
  co_await here.write("question");
  std::array<std::byte, 64> buffer;
  EXPECT_EQ(co_await there.read(buffer), 8U);
  co_await there.write("answer");
  co_await there.shutdown();
  EXPECT_EQ(co_await read_to_end(here), "answer");
  co_await here.write(" and more");  // its own direction is open
  co_await here.shutdown();
  co_await here.shutdown();  // has no effect
  EXPECT_EQ(co_await read_to_end(there), " and more");
  EXPECT_EQ(co_await there.read(buffer), 0U);  // again
  EXPECT_EQ((co_await as_result(here.write("x"))).error(), weft::errc::closed);
}

WEFT_TEST("tls: much is written and read at once, in both directions") {
  auto both = co_await handshake(client_of(root()), server_of(root()));
  const std::string much = test::letters(test::rounds(3'000'000));
  const auto send = [&](const stream<>& to) -> task<> {
    co_await to.write(much);
    co_await to.shutdown();
  };
  auto [one, other, none, nor] =
      co_await weft::when_all(read_to_end(both.here), read_to_end(both.there), send(both.here), send(both.there));
  EXPECT_TRUE(one == much);
  EXPECT_TRUE(other == much);
}

// A record may be sent in part at once, and the rest when the socket has room again.
connection connected_with_little_room() {
  connection both = test::connected();
  const int little = 3000;
  for (const weft::net::stream* one : {&both.here, &both.there})
    test::done(::setsockopt(one->native_handle(), SOL_SOCKET, SO_SNDBUF, &little, sizeof little) == 0);
  return both;
}

WEFT_TEST("tls: records for which there is not always room come whole") {
  connection raw = connected_with_little_room();
  auto both = co_await handshake(client_of(root()), server_of(root()), std::move(raw.here), std::move(raw.there));
  const std::string much = test::letters(test::rounds(300'000));
  const auto send = [&](const stream<>& to) -> task<> {
    for (std::size_t at = 0, size = 1; at < much.size(); at += size, size = (size * 3 + 1) % 16'384)
      co_await to.write(std::string_view{much}.substr(at, size));
    co_await to.shutdown();
  };
  auto [one, other, none, nor] =
      co_await weft::when_all(read_to_end(both.here), read_to_end(both.there), send(both.here), send(both.there));
  EXPECT_TRUE(one == much);
  EXPECT_TRUE(other == much);
}

WEFT_TEST("tls: a record that is stopped when a part of it is sent closes the stream") {
  connection raw = connected_with_little_room();
  // The server writes: a client has session tickets to read yet, and the close of a socket with unread bytes resets it.
  auto [there, here] =
      co_await handshake(client_of(root()), server_of(root()), std::move(raw.here), std::move(raw.there));
  const std::string one(16'000, 'x');
  const auto stops = [&here = here, &one](weft::scope& inside) -> task<> {
    auto writing = inside.fork_here(as_result(here.write(one)));
    co_await weft::sleep_for(1ms);
    writing.request_stop();
    EXPECT_TRUE((co_await std::move(writing)).is_stopped());
  };
  co_await weft::with_scope(stops);
  EXPECT_FALSE(here.is_open());
  EXPECT_EQ((co_await as_result(read_to_end(there))).error(), errc::truncated);
}

// A write that has failed has sent nothing, and may be repeated; or a beginning, and then the stream is at its end.
WEFT_TEST("tls: a write without memory sends nothing twice, and nothing behind a part of a record") {
  const client_context client = client_of(root());
  const server_context server = server_of(root());
  for (const std::size_t size : {std::size_t{4}, std::size_t{16'000}, std::size_t{40'000}})
    for (std::size_t enough = 0;; ++enough) {
      connection raw = connected_with_little_room();
      auto [there, here] = co_await handshake(client, server, std::move(raw.here), std::move(raw.there));
      const std::string one = test::letters(size);
      std::string got;
      const auto reads = [&there = there, &got]() -> task<std::error_code> {
        std::array<std::byte, 1000> buffer;
        for (;;) {
          const auto more = co_await as_result(there.read(buffer));
          if (!more.has_value()) {
            there.close();
            co_return more.error();
          }
          if (more.value() == 0) co_return std::error_code{};
          got.append(reinterpret_cast<const char*>(buffer.data()), more.value());
        }
      };
      bool was_written = false;
      const auto writes = [&here = here, &one, &was_written, enough]() -> task<> {
        test::counting_resource memory;
        memory.fail_after = enough;
        const auto write = [&]() -> task<> { co_await here.write(one); };
        was_written = (co_await as_result(weft::with_memory(&memory, write))).has_value();
        if (!was_written) static_cast<void>(co_await as_result(here.write(one)));
        static_cast<void>(co_await as_result(here.shutdown()));
        here.close();
      };
      const auto [failed, written] = co_await weft::when_all(reads(), as_result(writes()));
      EXPECT_TRUE(!failed || failed == errc::truncated) << failed.message();
      EXPECT_TRUE(failed ? one.starts_with(got) && !was_written : got == one)
          << enough << " allocations for " << size << " bytes: " << got.size() << " have come";
      if (was_written) break;
    }
}

WEFT_TEST("tls: works over pipes in memory, a byte at a time") {
  auto ends = test::pipes(1);
  auto both = co_await handshake(client_of(root()), server_of(root()), std::move(ends.here), std::move(ends.there));
  auto [got, sent] = co_await weft::when_all(read_to_end(both.there), test::say(both.here, test::letters(3000)));
  EXPECT_EQ(got, test::letters(3000));
}

WEFT_TEST("tls: an empty read and an empty write wait for nothing") {
  auto [here, there] = co_await handshake(client_of(root()), server_of(root()));
  EXPECT_EQ(co_await here.read({}), 0U);
  EXPECT_EQ(co_await here.write_some({}), 0U);
  co_await here.write("");
  EXPECT_EQ(co_await here.write_some(bytes("abc")), 3U);
  EXPECT_EQ(co_await test::read_some(there, 8), "abc");
}

WEFT_TEST("tls: lines go through buffers around a stream") {
  auto [here, there] = co_await handshake(client_of(root()), server_of(root()));
  weft::io::buffered_writer out{here};
  co_await out.print("one\n", 2, "\n");
  co_await out.flush();
  co_await here.shutdown();
  weft::io::buffered_reader in{there};
  EXPECT_EQ(co_await in.read_line(), "one");
  EXPECT_EQ(co_await in.read_line(), "2");
  EXPECT_EQ(co_await in.read_line(), std::nullopt);
}

TEST(tls, works_in_fibers_and_on_plain_threads) {
  auto both = weft::sync_wait(handshake(client_of(root()), server_of(root())));
  std::jthread other{[&] {
    std::array<std::byte, 16> buffer;
    const std::size_t got = weft::sync_wait(both.there.read(buffer));
    weft::sync_wait(both.there.write(std::span<const std::byte>{buffer}.first(got)));
  }};
  weft::sync_wait(both.here.write("thread"));
  EXPECT_EQ(weft::sync_wait(test::read_some(both.here, 16)), "thread");
  other.join();
  weft::runtime rt{{.threads = 2}};
  const auto body = [](weft::scope& inside) -> task<std::string> {
    auto streams = co_await handshake(client_of(root()), server_of(root()));
    inside.go([there = std::move(streams.there)] {
      std::array<std::byte, 16> buffer;
      const std::size_t got = weft::await(there.read(buffer));
      weft::await(there.write(std::span<const std::byte>{buffer}.first(got)));
    });
    co_return co_await inside.go([&] {
      weft::await(streams.here.write("fiber"));
      return weft::await(test::read_some(streams.here, 16));
    });
  };
  EXPECT_EQ(rt.run(weft::with_scope(body)), "fiber");
}

// ---- what they agree on ---------------------------------------------------------------------------------------------------

WEFT_TEST("tls: both sides know what they have agreed on") {
  constexpr std::array<std::string_view, 2> ours{"h2", "http/1.1"}, theirs{"http/1.1", "h2"};
  const credentials mine = root().issue();
  const client_context client{{.trust = root().trusted(), .alpn = theirs}};
  const server_context server{{.certificate = mine.shown(), .alpn = ours}};
  auto [here, there] = co_await handshake(client, server);
  EXPECT_EQ(here.alpn(), "h2");
  EXPECT_EQ(there.alpn(), "h2");
  EXPECT_EQ(here.version(), "TLSv1.3");
  EXPECT_EQ(here.cipher(), there.cipher());
  EXPECT_TRUE(here.cipher().starts_with("TLS_AES"));
  EXPECT_EQ(there.server_name(), "here.test");
  EXPECT_FALSE(there.peer_certificate());
  const auto its = here.peer_certificate();
  EXPECT_TRUE(its);
  if (!its) co_return;
  EXPECT_EQ(its->subject, "CN=here.test");
  EXPECT_EQ(its->issuer, "CN=authority");
  EXPECT_EQ(its->names, std::vector<std::string>{"here.test"});
  EXPECT_FALSE(its->serial.empty());
  EXPECT_GT(its->der.size(), 200U);
  EXPECT_NE(its->sha256, (std::array<std::byte, 32>{}));
  EXPECT_LT(its->not_before, std::chrono::system_clock::now());
  EXPECT_GT(its->not_after, std::chrono::system_clock::now());
}

WEFT_TEST("tls: sides without a common protocol refuse each other") {
  constexpr std::array<std::string_view, 1> ours{"h2"}, theirs{"spdy"};
  const credentials mine = root().issue();
  const client_context client{{.trust = root().trusted(), .alpn = theirs}};
  const server_context server{{.certificate = mine.shown(), .alpn = ours}};
  auto how = co_await test::try_handshake(client, server);
  EXPECT_EQ(how.here, errc::no_common_protocol);
  EXPECT_EQ(how.there, errc::no_common_protocol);
}

WEFT_TEST("tls: the server's certificate is chosen by the name that the client asks for") {
  const credentials usual = root().issue(), other = root().issue({.names = "DNS:*.other.test,DNS:third.test"});
  const std::array others{other.shown()};
  const server_context server{{.certificate = usual.shown(), .others = others}};
  for (const char* name : {"a.other.test", "third.test", "here.test", "here.test."}) {
    auto [here, there] = co_await handshake(client_of(root()), server, name);
    const auto its = here.peer_certificate();
    EXPECT_EQ(its->names.size(), std::string_view{name}.starts_with("here") ? 1U : 2U) << name;
  }
  EXPECT_EQ((co_await test::try_handshake(client_of(root()), server, "a.b.other.test")).here, errc::wrong_host);
}

WEFT_TEST("tls: sessions are resumed by both sides, also behind a reload, unless either does not want that") {
  const client_context client = client_of(root());
  const credentials mine = root().issue();
  for (const bool resumes : {true, false}) {
    const server_context server{{.certificate = mine.shown(), .resumes = resumes}};
    bool was = false;
    for (int i = 0; i != 3; ++i) {
      auto [here, there] = co_await handshake(client, server);
      was = here.is_resumed();
      EXPECT_EQ(here.is_resumed(), there.is_resumed());
      EXPECT_EQ(was, resumes && i != 0);
      co_await there.write("x");  // behind it come tickets, which a read takes
      EXPECT_EQ(co_await test::read_some(here, 1), "x");
      server.reload(mine.shown());
      if (was) {
        EXPECT_EQ(here.peer_certificate()->subject, "CN=here.test");
      }
    }
  }
}

WEFT_TEST("tls: a session is resumed for its own host alone") {
  const credentials both = root().issue({.names = "DNS:here.test,DNS:there.test"});
  const server_context server{{.certificate = both.shown()}};
  const client_context client = client_of(root());
  for (const char* name : {"here.test", "there.test"}) {
    auto [here, there] = co_await handshake(client, server, name);
    EXPECT_FALSE(here.is_resumed()) << name;
    co_await there.write("x");
    EXPECT_EQ(co_await test::read_some(here, 1), "x");
  }
}

WEFT_TEST("tls: a reload changes what later handshakes show, and a bad one nothing") {
  const credentials first = root().issue({.name = "first"}), second = root().issue({.name = "second"});
  const server_context server{{.certificate = first.shown(), .resumes = false}};
  auto [here, there] = co_await handshake(client_of(root()), server);
  server.reload(second.shown());
  auto later = co_await handshake(client_of(root()), server);
  EXPECT_EQ(here.peer_certificate()->subject, "CN=first");
  EXPECT_EQ(later.here.peer_certificate()->subject, "CN=second");
  co_await here.write("still there");
  EXPECT_EQ(co_await test::read_some(there, 64), "still there");
  const credentials mixed{first.chain, second.key};
  EXPECT_THROW(server.reload(mixed.shown()), weft::error);
  EXPECT_THROW(server.reload({.chain = pem::text("none"), .key = pem::text("none")}), weft::error);
  auto last = co_await handshake(client_of(root()), server);
  EXPECT_EQ(last.here.peer_certificate()->subject, "CN=second");
}

// ---- what is refused ------------------------------------------------------------------------------------------------------

struct refusal {
  const char* name;
  std::error_code why;
  test::wanted what{};
  const char* host = "here.test";
};

WEFT_TEST("tls: a client refuses a server with a bad certificate, and says why") {
  const std::vector<refusal> all{
      {"expired", errc::certificate_expired, {.from = -7200, .until = -60}},
      {"early", errc::certificate_not_yet_valid, {.from = 60, .until = 3600}},
      {"other host", errc::wrong_host, {.names = "DNS:other.test"}},
      {"wildcard one level up", errc::wrong_host, {.names = "DNS:*.test"}, "a.here.test"},
      {"wildcard in a name", errc::wrong_host, {.names = "DNS:h*.test"}},
      {"address for a name", errc::wrong_host, {.names = "IP:127.0.0.1"}},
      {"other address", errc::wrong_host, {.names = "IP:127.0.0.1"}, "127.0.0.2"},
      {"name for an address", errc::wrong_host, {.names = "DNS:127.0.0.1"}, "127.0.0.1"},
      {"SHA-1", errc::weak_certificate, {.by_sha1 = true}},
  };
  for (const refusal& one : all) {
    const credentials bad = root().issue(one.what);
    auto how = co_await test::against_openssl(client_of(root()), bad, one.host);
    EXPECT_EQ(how, one.why) << one.name << ": " << how.message();
    EXPECT_EQ(how, std::errc::protocol_error);
  }
  const credentials weak = root().issue({.rsa_bits = 1024});
  EXPECT_EQ(co_await test::against_openssl(client_of(root()), weak, "here.test"), errc::weak_certificate);
  const credentials alone = authority::self_signed();
  EXPECT_EQ(co_await test::against_openssl(client_of(root()), alone, "here.test"), errc::self_signed);
  const authority stranger{"stranger"};
  const credentials unknown = stranger.issue();
  EXPECT_EQ(co_await test::against_openssl(client_of(root()), unknown, "here.test"), errc::unknown_issuer);
}

WEFT_TEST("tls: a client takes a wildcard, an address, and a chain with one between") {
  const authority between{"between", &root()};
  for (const auto& [names, host] : {std::pair{"DNS:*.here.test", "a.here.test"}, std::pair{"IP:127.0.0.1", "127.0.0.1"},
                                    std::pair{"IP:::1", "::1"}, std::pair{"DNS:here.test", "HERE.test"}}) {
    const credentials mine = between.issue({.names = names});
    const server_context server{{.certificate = mine.shown()}};
    auto how = co_await test::try_handshake(client_of(root()), server, host);
    EXPECT_FALSE(how.here) << host << how.here.message();
  }
  // Without the one between, the chain ends.
  credentials cut = between.issue();
  cut.chain = cut.chain.substr(0, cut.chain.find("-----BEGIN", 1));
  EXPECT_EQ(co_await test::against_openssl(client_of(root()), cut, "here.test"), errc::unknown_issuer);
}

WEFT_TEST("tls: a client refuses what was revoked, and where no list tells") {
  const authority issuer{"with a list"}, other{"without"};
  const credentials good = issuer.issue(), bad = issuer.issue(), unknown = other.issue();
  const std::string list = issuer.revoke({bad}), both = issuer.pem() + other.pem();
  const client_context client{{.trust = pem::text(both), .revoked = pem::text(list)}};
  EXPECT_FALSE(co_await test::against_openssl(client, good, "here.test"));
  EXPECT_EQ(co_await test::against_openssl(client, bad, "here.test"), errc::certificate_revoked);
  EXPECT_EQ(co_await test::against_openssl(client, unknown, "here.test"), errc::revocation_unknown);
}

WEFT_TEST("tls: either side refuses what an issuer that was revoked has issued, and needs the list of each issuer") {
  const authority top{"top"}, between{"between", &top};
  const credentials mine = between.issue(), its_own{between.pem(), {}};
  const std::string upper = top.revoke({}), lower = between.revoke({}), revoked = top.revoke({its_own}) + lower;
  const auto client_refuses = [&](const std::string& lists) -> task<std::error_code> {
    const client_context client{{.trust = top.trusted(), .revoked = pem::text(lists)}};
    co_return co_await test::against_openssl(client, mine, "here.test");
  };
  const auto server_refuses = [&](const std::string& lists) -> task<std::error_code> {
    const server_context server{{.certificate = mine.shown(),
                                 .clients = client_certificates::required,
                                 .client_trust = top.trusted(),
                                 .revoked = pem::text(lists)}};
    const client_context client{{.trust = top.trusted(), .own = mine.shown()}};
    co_return (co_await test::try_handshake(client, server)).there;
  };
  EXPECT_FALSE(co_await client_refuses(upper + lower));
  EXPECT_FALSE(co_await server_refuses(upper + lower));
  EXPECT_EQ(co_await client_refuses(revoked), errc::certificate_revoked);
  EXPECT_EQ(co_await server_refuses(revoked), errc::certificate_revoked);
  EXPECT_EQ(co_await client_refuses(lower), errc::revocation_unknown);
  EXPECT_EQ(co_await server_refuses(upper), errc::revocation_unknown);
}

WEFT_TEST("tls: what is no host is refused, and not taken for whatever is below it") {
  const credentials mine = root().issue({.names = "DNS:other.example.com"});
  const server_context server{{.certificate = mine.shown()}};
  for (const auto how : {weft::tls::verify::peer, weft::tls::verify::chain})
    for (const char* host : {".example.com", ".com", ".", "..", "other..example.com", "other.example.com.."}) {
      connection raw = co_await connected_by_tcp();
      const client_context client{{.trust = root().trusted(), .peer = how}};
      auto connecting = as_result(weft::tls::connect(client, std::move(raw.here), host));
      EXPECT_EQ((co_await std::move(connecting)).error(), std::errc::invalid_argument) << host;
    }
}

WEFT_TEST("tls: of a certificate's names and times, what can't be said is not made up") {
  constexpr const char* with_five_bytes = "DER:30:12:82:09:68:65:72:65:2e:74:65:73:74:87:05:0a:00:00:01:02";
  const credentials mine = root().issue({.names = with_five_bytes, .until = 251'500'000'000});
  const server_context server{{.certificate = mine.shown()}};
  auto [here, there] = co_await handshake(client_of(root()), server);
  const auto its = here.peer_certificate();
  EXPECT_EQ(its->names, std::vector<std::string>{"here.test"});
  EXPECT_EQ(its->not_after, std::chrono::system_clock::time_point::max());
}

WEFT_TEST("tls: a client that offers no protocol is taken by a server that knows some") {
  constexpr std::array<std::string_view, 1> ours{"h2"};
  const credentials mine = root().issue();
  auto [here, there] =
      co_await handshake(client_of(root()), server_context{{.certificate = mine.shown(), .alpn = ours}});
  EXPECT_EQ(here.alpn() + there.alpn(), "");
}

WEFT_TEST("tls: a client may trust any host, or anybody") {
  const credentials alone = authority::self_signed({.names = "DNS:other.test"}),
                    other = root().issue({.names = "DNS:x"});
  const client_context anybody{{.peer = weft::tls::verify::nothing}};
  EXPECT_FALSE(co_await test::against_openssl(anybody, alone, "here.test"));
  const client_context any_host{{.trust = root().trusted(), .peer = weft::tls::verify::chain}};
  EXPECT_FALSE(co_await test::against_openssl(any_host, other, "here.test"));
  EXPECT_EQ(co_await test::against_openssl(any_host, alone, "here.test"), errc::self_signed);
}

WEFT_TEST("tls: a server takes the clients whose certificates are good, and no others") {
  const credentials mine = root().issue();
  const authority clients{"clients"};
  const credentials good = clients.issue({.name = "good"}), bad = root().issue(), late = clients.issue({.until = -60});
  const auto refused = [&](const credentials* own, client_certificates how) -> task<std::error_code> {
    const server_context server{{.certificate = mine.shown(), .clients = how, .client_trust = clients.trusted()}};
    const client_context client{
        {.trust = root().trusted(), .own = own != nullptr ? own->shown() : weft::tls::certificate{}}};
    const auto how_it_was = co_await test::try_handshake(client, server);
    if (!how_it_was.there && own != nullptr) {
      EXPECT_EQ(how_it_was.subject_there, "CN=good");
    }
    if (how_it_was.there) {
      EXPECT_TRUE(how_it_was.here_later) << "the client must hear of it";
    }
    co_return how_it_was.there;
  };
  EXPECT_FALSE(co_await refused(&good, client_certificates::required));
  EXPECT_FALSE(co_await refused(&good, client_certificates::asked));
  EXPECT_FALSE(co_await refused(nullptr, client_certificates::asked));
  EXPECT_EQ(co_await refused(nullptr, client_certificates::required), errc::certificate_required);
  EXPECT_EQ(co_await refused(&bad, client_certificates::required), errc::unknown_issuer);
  EXPECT_EQ(co_await refused(&bad, client_certificates::asked), errc::unknown_issuer);
  EXPECT_EQ(co_await refused(&late, client_certificates::required), errc::certificate_expired);
}

TEST(tls, contexts_refuse_what_makes_no_sense) {
  const credentials good = root().issue(), weak = root().issue({.rsa_bits = 1024});
  const auto code_of = [](auto make) -> std::error_code {
    try {
      make();
    } catch (const weft::error& failed) {
      return failed.code();
    }
    return {};
  };
  EXPECT_EQ(code_of([] { server_context{{}}; }), std::errc::invalid_argument);
  EXPECT_EQ(code_of([&] { server_context{{.certificate = {.chain = pem::text(good.chain)}}}; }),
            std::errc::invalid_argument);
  EXPECT_EQ(code_of([&] { server_context{{.certificate = weak.shown()}}; }), errc::weak_certificate);
  EXPECT_EQ(code_of([&] { server_context{{.certificate = good.shown(), .clients = client_certificates::required}}; }),
            std::errc::invalid_argument);
  EXPECT_EQ(code_of([] { client_context{{.trust = pem::file("/no/such/file")}}; }),
            std::errc::no_such_file_or_directory);
  EXPECT_EQ(code_of([] { client_context{{.trust = pem::text("")}}; }).category(), weft::tls::category());
  const std::string broken = good.chain + "-----BEGIN CERTIFICATE-----\nno\n-----END CERTIFICATE-----\n";
  EXPECT_TRUE(code_of([&] { client_context{{.trust = pem::text(broken)}}; }));
  constexpr std::array<std::string_view, 1> empty{""};
  EXPECT_EQ(code_of([&] { client_context{{.alpn = empty}}; }), std::errc::invalid_argument);
  EXPECT_FALSE(code_of([] { client_context{}; }));  // trusts what the system does
}

TEST(tls, certificates_are_read_from_files_and_keys_by_their_passwords) {
  const credentials good = root().issue();
  const test::own_directory in;
  const std::string chain = in.path("chain.pem"), key = in.path("key.pem");
  std::ofstream{chain} << good.chain;
  std::ofstream{key} << test::encrypted(good.key, "secret");
  const auto make = [&](std::string_view password) {
    return server_context{{.certificate = {.chain = pem::file(chain), .key = pem::file(key), .password = password}}};
  };
  EXPECT_NO_THROW(make("secret"));
  EXPECT_THROW(make("guess"), weft::error);
  EXPECT_THROW(make(""), weft::error);
}

TEST(tls, errors_have_sentences) {
  for (int i = 1; i <= static_cast<int>(errc::flooded); ++i)
    EXPECT_NE(make_error_code(static_cast<errc>(i)).message(), "unknown") << i;
  EXPECT_EQ((std::error_code{999, weft::tls::category()}.message()), "unknown");
}

// ---- ends -----------------------------------------------------------------------------------------------------------------

WEFT_TEST("tls: a stream that ends without a word is truncated") {
  auto [here, there] = co_await handshake(client_of(root()), server_of(root()));
  co_await there.write("all");
  there.close();
  EXPECT_EQ(co_await test::read_some(here, 16), "all");
  std::array<std::byte, 16> buffer;
  for (int i = 0; i != 2; ++i) EXPECT_EQ((co_await as_result(here.read(buffer))).error(), errc::truncated);
  EXPECT_FALSE(there.is_open());
  EXPECT_TRUE(here.is_open());
  EXPECT_EQ((co_await as_result(there.read(buffer))).error(), weft::errc::closed);
  EXPECT_EQ((co_await as_result(there.write("x"))).error(), weft::errc::closed);
  EXPECT_EQ((co_await as_result(there.shutdown())).error(), weft::errc::closed);
}

WEFT_TEST("tls: a handshake that its peer ends is truncated") {
  connection raw = co_await connected_by_tcp();
  raw.there.shutdown();
  auto how = co_await as_result(weft::tls::connect(client_of(root()), std::move(raw.here), "here.test"));
  EXPECT_EQ(how.error(), errc::truncated);
}

WEFT_TEST("tls: a stream without a session fails with `closed`") {
  const stream<> none;
  std::array<std::byte, 4> buffer;
  EXPECT_EQ((co_await as_result(none.read(buffer))).error(), weft::errc::closed);
  EXPECT_EQ((co_await as_result(none.write("x"))).error(), weft::errc::closed);
  EXPECT_EQ((co_await as_result(none.write_some(bytes("x")))).error(), weft::errc::closed);
  EXPECT_EQ((co_await as_result(none.shutdown())).error(), weft::errc::closed);
  EXPECT_FALSE(none.is_open());
  EXPECT_EQ(none.alpn() + none.cipher() + none.version() + none.server_name(), "");
  EXPECT_FALSE(none.is_resumed() || none.peer_certificate());
}

WEFT_TEST("tls: close wakes who reads") {
  auto both = co_await handshake(client_of(root()), server_of(root()));
  std::array<std::byte, 4> buffer;
  const auto close = [&]() -> task<> {
    co_await weft::sleep_for(1ms);
    both.here.close();
  };
  auto [how, none] = co_await weft::when_all(as_result(both.here.read(buffer)), close());
  EXPECT_EQ(how.error(), weft::errc::closed);
}

WEFT_TEST("tls: a stopped read loses nothing, a stopped write closes the stream") {
  auto [here, there] = co_await handshake(client_of(root()), server_of(root()));
  std::array<std::byte, 16> buffer;
  auto late = co_await as_result(weft::timeout(1ms, here.read(buffer)));
  EXPECT_EQ(late.error(), weft::errc::timed_out);
  co_await there.write("whole");
  EXPECT_EQ(co_await test::read_some(here, 16), "whole");
  const std::string much = test::letters(20'000'000);
  const auto stops = [&here = here, &much](weft::scope& inside) -> task<> {
    auto writing = inside.fork_here(as_result(here.write(much)));  // it waits for room when this returns
    writing.request_stop();
    EXPECT_TRUE((co_await std::move(writing)).is_stopped());
  };
  co_await weft::with_scope(stops);
  EXPECT_FALSE(here.is_open());
  EXPECT_EQ((co_await as_result(here.read(buffer))).error(), weft::errc::closed);
  EXPECT_EQ((co_await as_result(read_to_end(there))).error(), errc::truncated);
}

}  // namespace

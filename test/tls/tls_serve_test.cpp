// Servers by TLS: many clients while certificates are replaced, clients that mean harm, and both directions of a session at once.
#include <weft/tls.hpp>

#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>
#include <weft/combine.hpp>
#include <weft/race.hpp>
#include <weft/runtime.hpp>
#include <weft/scope.hpp>

#include "net/sockets.hpp"
#include "support/weft_test.hpp"
#include "tls/certificates.hpp"
#include "tls/pairs.hpp"

namespace {

using namespace std::chrono_literals;
using test::anywhere;
using test::client_of;
using test::connected_by_tcp;
using test::connection;
using test::credentials;
using test::handshake;
using test::openssl_peer;
using test::read_to_end;
using test::root;
using test::server_of;
using weft::as_result;
using weft::task;
using weft::net::endpoint;
using weft::net::listener;
using weft::net::server_stats;
using weft::tls::errc;
using weft::tls::server_context;
using weft::tls::stream;

task<> echo(stream<> peer) {
  std::array<std::byte, 512> buffer;
  while (const std::size_t size = co_await peer.read(buffer)) co_await peer.write(std::span{buffer}.first(size));
  co_await peer.shutdown();
}

task<std::string> ask(const weft::tls::client_context& by, endpoint where, std::string_view question) {
  weft::net::stream raw = co_await weft::net::connect(where);
  const stream<> to = co_await weft::tls::connect(by, std::move(raw), "here.test");
  co_await to.write(question);
  co_await to.shutdown();
  co_return co_await read_to_end(to);
}

// Runs `clients`, which is given an address, beside a server that echoes.
template <class Clients>
task<> beside_a_server(weft::tls::serve_options options, const server_context& by, Clients clients) {
  listener at = co_await weft::net::listen(anywhere);
  const endpoint where = at.local();
  auto both = weft::when_any(weft::tls::serve(options, by, std::move(at), echo), clients(where));
  co_await std::move(both);
}

// ---- many -----------------------------------------------------------------------------------------------------------------

TEST(tls_serve, serves_many_while_certificates_are_replaced) {
  // As many as the environment says, else 5,000; under a sanitizer 100. Fewer where there are not so many descriptors.
  const char* const asked = std::getenv("WEFT_TLS_CONNECTIONS");
  const std::size_t usual = test::rounds(10) == 10 ? 5000 : 100;
  const std::size_t most = asked != nullptr ? std::strtoul(asked, nullptr, 10) : usual;
  rlimit files{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &files), 0);
  files.rlim_cur = std::min<rlim_t>(files.rlim_max, 2 * most + 200);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &files), 0);
  const std::size_t count = std::min<std::size_t>(most, files.rlim_cur / 2 - 100);

  const credentials first = root().issue({.name = "first"}), second = root().issue({.name = "second"});
  const server_context server{{.certificate = first.shown()}};  // it makes tickets, which nobody uses
  const weft::tls::client_context client{{.trust = root().trusted(), .resumes = false}};
  server_stats stats;
  std::atomic<std::size_t> firsts{0}, seconds{0}, answered{0}, reloads{0};
  std::atomic<bool> is_over{false};
  std::size_t more = 0;  // connections
  const std::string question = test::letters(3000);
  const auto clients = [&](endpoint where) -> task<> {
    const auto asks = [&](const stream<>& one) -> task<> {
      co_await one.write(question);
      std::string answer;
      while (answer.size() < question.size()) {
        const std::string more = co_await test::read_some(one, question.size() - answer.size());
        if (more.empty()) break;
        answer += more;
      }
      if (answer == question) ++answered;
    };
    const auto connects = [&](stream<>& to) -> task<> {
      weft::net::stream raw = co_await weft::net::connect(where);
      to = co_await weft::tls::connect(client, std::move(raw), "here.test");
      const auto its = to.peer_certificate();
      (its && its->subject == "CN=first" ? firsts : seconds) += 1;
      co_await asks(to);
    };
    const auto replaces = [&]() -> task<> {
      for (bool is_first = false; !is_over; is_first = !is_first) {
        server.reload((is_first ? first : second).shown());
        ++reloads;
        co_await weft::sleep_for(2ms);
      }
    };
    // A hundred at a time connect and ask; then all ask once more.
    const auto all = [&]() -> task<> {
      std::vector<stream<>> streams(count);
      for (const bool are_new : {true, false})
        for (std::size_t begun = 0; begun < count;) {
          std::vector<task<>> some;
          for (; some.size() != 100 && begun < count; ++begun)
            some.push_back(are_new ? connects(streams[begun]) : asks(streams[begun]));
          co_await weft::when_all(std::move(some));
        }
      for (; reloads < 2 || seconds == 0; ++more) {  // where the timer was late
        stream<> one;
        co_await connects(one);
      }
      is_over = true;
    };
    co_await weft::when_all(all(), replaces());
  };
  weft::runtime rt{{.threads = 2}};
  weft::tls::serve_options options{.net = {.handshake_timeout = 10min, .grace = 0s, .stats = &stats},
                                   .max_handshakes = 64};
  rt.run(beside_a_server(options, server, clients));
  EXPECT_EQ(answered, 2 * count + more);
  EXPECT_EQ(stats.accepted(), count + more);
  EXPECT_EQ(firsts + seconds, count + more);
  EXPECT_EQ(stats.failures(), 0U);
}

// ---- who means harm -------------------------------------------------------------------------------------------------------

WEFT_TEST("tls_serve: clients that speak no TLS, or break off, harm no other one") {
  server_stats stats;
  const auto no_error = [](const endpoint&, std::exception_ptr) { ADD_FAILURE() << "a peer's fault is no failure"; };
  const auto clients = [&](endpoint where) -> task<> {
    for (const std::string_view text : {std::string_view{"GET / HTTP/1.1\r\nHost: here.test\r\n\r\n"},
                                        std::string_view{"\x16\x03\x01\x40\x00 and no more of that", 26},
                                        std::string_view{"\0\0\0\0\0\0\0\0\0", 9}, std::string_view{"\x16"}}) {
      weft::net::stream raw = co_await weft::net::connect(where);
      co_await raw.write(text);
      raw.shutdown();
      static_cast<void>(co_await as_result(test::read_all(raw)));
    }
    weft::net::stream reset = co_await weft::net::connect(where);
    co_await reset.write("\x16\x03\x01");
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    EXPECT_EQ(::setsockopt(reset.native_handle(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
    reset = {};
    EXPECT_EQ(co_await ask(client_of(root()), where, "question"), "question");
    while (stats.active() != 0) co_await weft::sleep_for(1ms);
  };
  const server_context server = server_of(root());
  weft::tls::serve_options options{.net = {.handshake_timeout = 10min, .on_error = no_error, .stats = &stats}};
  co_await beside_a_server(options, server, clients);
  EXPECT_EQ(stats.accepted(), 6U);
  EXPECT_EQ(stats.peer_errors(), 5U);
}

WEFT_TEST("tls_serve: a client that never finishes is late, and keeps no place of a handshake") {
  server_stats stats;
  const auto clients = [&](endpoint where) -> task<> {
    const weft::net::stream silent = co_await weft::net::connect(where);
    EXPECT_EQ(co_await test::read_all(silent), "");
    while (stats.late() == 0) co_await weft::sleep_for(1ms);
    // On a machine that stalls meanwhile this one is late, too, and asks again.
    const weft::tls::client_context client = client_of(root());
    std::string answer;
    for (int i = 0; i != 50 && answer.empty(); ++i) {
      auto asking = as_result(ask(client, where, "question"));
      const auto got = co_await std::move(asking);
      if (got.has_value()) answer = *got;
    }
    EXPECT_EQ(answer, "question");
  };
  const server_context server = server_of(root());
  co_await beside_a_server({.net = {.handshake_timeout = 200ms, .stats = &stats}, .max_handshakes = 1}, server,
                           clients);
}

WEFT_TEST("tls_serve: what is no TLS has a name") {
  connection raw = co_await connected_by_tcp();
  co_await raw.here.write("GET / HTTP/1.1\r\n\r\n");
  const server_context server = server_of(root());
  EXPECT_EQ((co_await as_result(weft::tls::accept(server, std::move(raw.there)))).error(), errc::not_tls);
  connection other = co_await connected_by_tcp();
  co_await other.there.write("HTTP/1.1 400 Bad Request\r\n\r\n");
  EXPECT_EQ((co_await as_result(weft::tls::connect(client_of(root()), std::move(other.here), "here.test"))).error(),
            errc::not_tls);
}

// A server's side by weft, and a client by OpenSSL on a thread of its own.
template <class Client>
task<stream<>> accept_from(std::jthread& thread, Client client, int most = TLS1_3_VERSION) {
  test::with_number raw = test::connected_to_number();
  thread = std::jthread{[client, most, number = raw.there] {
    const openssl_peer peer{number, nullptr, most};
    if (peer.handshake()) client(peer);
  }};
  const server_context server = server_of(root());
  co_return co_await weft::tls::accept(server, std::move(raw.here));
}

WEFT_TEST("tls_serve: records of a byte, and reads of a byte, come in order") {
  std::jthread thread;
  const std::string text = test::letters(300);
  const stream<> peer = co_await accept_from(thread, [&text](const openssl_peer& client) {
    for (const char& one : text) client.write({&one, 1});
    SSL_shutdown(client.get());
    client.read();
  });
  std::string got;
  for (std::string some; !(some = co_await test::read_some(peer, 1)).empty();) got += some;
  EXPECT_EQ(got, text);
}

WEFT_TEST("tls_serve: a client may not renegotiate, and hears of that at once") {
  std::jthread thread;
  std::atomic<bool> was_refused{false};
  const stream<> peer = co_await accept_from(
      thread,
      [&](const openssl_peer& client) {
        client.write("before");
        SSL_renegotiate(client.get());
        was_refused = SSL_do_handshake(client.get()) != 1 || client.read().empty();
      },
      TLS1_2_VERSION);
  EXPECT_EQ(peer.version(), "TLSv1.2");
  EXPECT_EQ(co_await test::read_some(peer, 64), "before");
  EXPECT_TRUE((co_await as_result(test::read_some(peer, 64))).error());
  thread.join();
  EXPECT_TRUE(was_refused);
}

WEFT_TEST("tls_serve: who asks for answers and reads none is cut off") {
  std::jthread thread;
  stream<> peer = co_await accept_from(thread, [](const openssl_peer& client) {
    for (int i = 0; i != 100'000; ++i)
      if (SSL_key_update(client.get(), SSL_KEY_UPDATE_REQUESTED) != 1 || SSL_do_handshake(client.get()) != 1) return;
  });
  auto how = co_await as_result(test::read_some(peer, 64));
  EXPECT_EQ(how.error(), errc::flooded) << how.error().message();
  EXPECT_EQ((co_await as_result(peer.write("x"))).error(), errc::flooded);
  peer.close();
}

WEFT_TEST("tls_serve: a record that was changed on its way ends the session") {
  connection raw = co_await connected_by_tcp();
  const int number = ::dup(raw.here.native_handle());
  auto [here, there] =
      co_await handshake(client_of(root()), server_of(root()), std::move(raw.here), std::move(raw.there));
  constexpr std::string_view forged{"\x17\x03\x03\x00\x20 no such record was ever made ..", 37};
  EXPECT_EQ(::send(number, forged.data(), forged.size(), MSG_NOSIGNAL), static_cast<ssize_t>(forged.size()));
  ::close(number);
  const std::error_code how = (co_await as_result(test::read_some(there, 64))).error();
  EXPECT_EQ(how, std::errc::protocol_error);
  EXPECT_NE(how.message().find("mac"), std::string::npos) << how.message();
  EXPECT_EQ((co_await as_result(there.write("x"))).error(), how);
  EXPECT_TRUE((co_await as_result(test::read_some(here, 64))).error()) << "the other side was told";
}

// ---- both directions at once ----------------------------------------------------------------------------------------------

// The peer changes its keys meanwhile, and has the other side change its own.
TEST(tls_serve, reads_and_writes_at_once_on_two_threads_while_keys_change) {
  const std::size_t size = static_cast<std::size_t>(test::rounds(400'000));
  const std::string text = test::letters(size);
  std::jthread thread;
  weft::runtime rt{{.threads = 2}};
  const auto body = [&]() -> task<> {
    const stream<> peer = co_await accept_from(thread, [&](const openssl_peer& client) {
      std::string back;
      for (std::size_t at = 0; at < size; at += 1000) {
        SSL_key_update(client.get(), SSL_KEY_UPDATE_REQUESTED);
        EXPECT_TRUE(client.write(std::string_view{text}.substr(at, 1000)));
        while (back.size() < at) {
          const std::string some = client.read(16 * 1024);
          if (some.empty()) break;
          back += some;
        }
      }
      while (back.size() < size) {
        const std::string some = client.read(16 * 1024);
        if (some.empty()) break;
        back += some;
      }
      EXPECT_TRUE(back == text);
      SSL_shutdown(client.get());
    });
    auto [got, none] = co_await weft::when_all(read_to_end(peer), [&]() -> task<> {
      for (std::size_t at = 0; at < size; at += 700) co_await peer.write(std::string_view{text}.substr(at, 700));
    }());
    EXPECT_TRUE(got == text);
  };
  rt.run(body());
}

TEST(tls_serve, plain_threads_read_and_write_at_once) {
  auto both = weft::sync_wait(handshake(client_of(root()), server_of(root())));
  const std::string text = test::letters(static_cast<std::size_t>(test::rounds(1'000'000)));
  std::string one, other;
  {
    const std::jthread first{[&] { one = weft::sync_wait(read_to_end(both.here)); }};
    const std::jthread second{[&] { other = weft::sync_wait(read_to_end(both.there)); }};
    const std::jthread third{[&] { weft::sync_wait(test::say(both.here, text)); }};
    weft::sync_wait(test::say(both.there, text));
  }
  EXPECT_TRUE(one == text);
  EXPECT_TRUE(other == text);
}

}  // namespace

// What a session goes on with behind its handshake: tickets, which come later, and handshakes that are resumed by them.
#include <weft/tls.hpp>

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <weft/combine.hpp>
#include <weft/io.hpp>
#include <weft/race.hpp>
#include <weft/scope.hpp>

#include "net/sockets.hpp"
#include "support/weft_test.hpp"
#include "tls/certificates.hpp"
#include "tls/pairs.hpp"

namespace { std::atomic<long> seconds_ahead{0}; }  // namespace

// OpenSSL's clock, since it calls this program's.
extern "C" time_t time(time_t* into) noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  now.tv_sec += seconds_ahead;
  if (into != nullptr) *into = now.tv_sec;
  return now.tv_sec;
}

namespace {

using test::credentials;
using test::done;
using test::handshake;
using test::root;
using weft::task;
using weft::tls::client_certificates;
using weft::tls::client_context;
using weft::tls::errc;
using weft::tls::server_context;
using weft::tls::verify;
using weft::tls::version;

class ahead {
 public:
  explicit ahead(long seconds) { seconds_ahead = seconds; }
  ahead(const ahead&) = delete;
  ~ahead() { seconds_ahead = 0; }
};

// Whether it was resumed. The client has the tickets then.
task<bool> connects(client_context client, server_context server) {
  auto [here, there] = co_await handshake(client, server);
  co_await there.write("x");
  EXPECT_EQ(co_await test::read_some(here, 1), "x");
  co_return here.is_resumed();
}

// ---- resumption -----------------------------------------------------------------------------------------------------------

WEFT_TEST("tls_resume: a client resumes nothing once the server's certificate has expired") {
  const credentials mine = root().issue({.until = 600});
  const client_context client = test::client_of(root());
  const server_context server{{.certificate = mine.shown()}};
  EXPECT_FALSE(co_await connects(client, server));
  EXPECT_TRUE(co_await connects(client, server));
  const ahead later{1200};
  EXPECT_EQ((co_await test::try_handshake(client, server)).here, errc::certificate_expired);
}

WEFT_TEST("tls_resume: a server resumes nothing once the client's certificate has expired") {
  const credentials mine = root().issue(), its = root().issue({.until = 600});
  const client_context client{{.trust = root().trusted(), .own = its.shown()}};
  const server_context server{
      {.certificate = mine.shown(), .clients = client_certificates::required, .client_trust = root().trusted()}};
  EXPECT_FALSE(co_await connects(client, server));
  EXPECT_TRUE(co_await connects(client, server));
  const ahead later{1200};
  EXPECT_EQ((co_await test::try_handshake(client, server)).there, errc::certificate_expired);
}

WEFT_TEST("tls_resume: a client that was given another certificate shows it, and resumes nothing of before") {
  const credentials mine = root().issue(), first = root().issue({.name = "first"}),
                    second = root().issue({.name = "second"});
  const client_context client{{.trust = root().trusted(), .own = first.shown()}};
  const server_context server{
      {.certificate = mine.shown(), .clients = client_certificates::required, .client_trust = root().trusted()}};
  EXPECT_FALSE(co_await connects(client, server));
  auto old = co_await handshake(client, server);
  EXPECT_TRUE(old.here.is_resumed());
  client.reload(second.shown());
  co_await old.there.write("x");  // with tickets, for whom the client was
  EXPECT_EQ(co_await test::read_some(old.here, 1), "x");
  auto fresh = co_await handshake(client, server);
  EXPECT_FALSE(fresh.here.is_resumed());
  EXPECT_EQ(fresh.there.peer_certificate()->subject, "CN=second");
}

// ---- whom a context trusts from now on ------------------------------------------------------------------------------------

WEFT_TEST("tls_resume: a server verifies each client again, once its trust was replaced") {
  const test::authority issuer{"of clients"};
  const credentials mine = root().issue(), good = issuer.issue(), bad = issuer.issue();
  const server_context server{{.certificate = mine.shown(),
                               .clients = client_certificates::required,
                               .client_trust = issuer.trusted(),
                               .revoked = weft::tls::pem::text(issuer.revoke({}))}};
  const client_context first{{.trust = root().trusted(), .own = good.shown()}},
      second{{.trust = root().trusted(), .own = bad.shown()}};
  for (const client_context& each : {first, second}) {
    EXPECT_FALSE(co_await connects(each, server));
    EXPECT_TRUE(co_await connects(each, server));
  }
  server.reload_trust(issuer.trusted(), weft::tls::pem::text(issuer.revoke({bad})));
  EXPECT_EQ((co_await test::try_handshake(second, server)).there, errc::certificate_revoked);
  EXPECT_FALSE(co_await connects(first, server));
  EXPECT_TRUE(co_await connects(first, server));
  server.reload_trust(root().trusted());
  EXPECT_EQ((co_await test::try_handshake(first, server)).there, errc::unknown_issuer);
  EXPECT_THROW(server.reload_trust(weft::tls::pem::text("none")), weft::error);
  EXPECT_THROW(server.reload_trust({}), weft::error) << "there is no default";
  EXPECT_EQ((co_await test::try_handshake(first, server)).there, errc::unknown_issuer)
      << "a bad one has changed nothing";
  EXPECT_THROW(test::server_of(root()).reload_trust(root().trusted()), weft::error) << "it asks for no certificates";
}

// Passes on what comes, and calls `first` before the first piece.
task<> pass_on(weft::io::pipe_reader from, weft::io::pipe_writer to, std::function<void()> first) {
  std::array<std::byte, 4096> buffer;
  for (;;) {
    auto reading = as_result(from.read(buffer));
    const auto got = co_await std::move(reading);
    if (!got.has_value() || got.value() == 0) co_return;
    if (first) std::exchange(first, {})();
    auto writing = as_result(to.write(std::span{buffer}.first(got.value())));
    if (!(co_await std::move(writing)).has_value()) co_return;
  }
}

// The server has answered when its trust is replaced, so it verifies the client by what it trusted before.
WEFT_TEST("tls_resume: a server takes no ticket of a handshake that began before its trust was replaced") {
  const credentials mine = root().issue();
  const server_context server{
      {.certificate = mine.shown(), .clients = client_certificates::required, .client_trust = root().trusted()}};
  const client_context client{{.trust = root().trusted(), .own = mine.shown()}};
  test::duplexes left = test::pipes(64 * 1024), right = test::pipes(64 * 1024);
  const auto accepts = [&]() -> task<> {
    const auto one = co_await weft::tls::accept(server, std::move(right.here));
    co_await one.write("x");
  };
  const auto says_hello = [&]() -> task<> {
    const auto one = co_await weft::tls::connect(client, std::move(left.here), "here.test");
    EXPECT_EQ(co_await test::read_some(one, 1), "x");
  };
  const std::function<void()> reloads = [&] { server.reload_trust(root().trusted()); };
  co_await weft::when_all(accepts(), says_hello(), pass_on(std::move(left.there.in), std::move(right.there.out), {}),
                          pass_on(std::move(right.there.in), std::move(left.there.out), reloads));
  EXPECT_FALSE(co_await connects(client, server));
  EXPECT_TRUE(co_await connects(client, server));
}

WEFT_TEST("tls_resume: a client verifies its server again, once its trust was replaced") {
  const test::authority other{"other"};
  const client_context client = test::client_of(root());
  const server_context server = test::server_of(root());
  EXPECT_FALSE(co_await connects(client, server));
  EXPECT_TRUE(co_await connects(client, server));
  client.reload_trust(other.trusted());
  EXPECT_EQ((co_await test::try_handshake(client, server)).here, errc::unknown_issuer);
  client.reload_trust(root().trusted(), weft::tls::pem::text(root().revoke({})));
  EXPECT_FALSE(co_await connects(client, server));
  const client_context careless{{.peer = verify::nothing}};
  EXPECT_THROW(careless.reload_trust(root().trusted()), weft::error);
}

// Bytes that have come on a socket and were not read.
int unread(int number) {
  int size = 0;
  done(::ioctl(number, FIONREAD, &size) == 0);
  return size;
}

// A client's transport whose second write, which ends its handshake, goes with its third: its first question.
struct holds_back {
  weft::net::stream raw;
  std::string held{};
  int writes = 0;
  auto read(std::span<std::byte> into) const { return raw.read(into); }
  task<> write(std::span<const std::byte> data) {
    held.append(reinterpret_cast<const char*>(data.data()), data.size());
    if (++writes == 2) co_return;
    co_await raw.write(std::exchange(held, {}));
  }
  task<std::size_t> write_some(std::span<const std::byte> data) {
    co_await write(data);
    co_return data.size();
  }
};

WEFT_TEST("tls_resume: tickets come with the first answer, or before the server waits for a question") {
  const server_context server = test::server_of(root());
  for (const bool answers : {true, false}) {
    const client_context client = test::client_of(root());
    test::connection raw = co_await test::connected_by_tcp();
    const int number = raw.here.native_handle();
    const auto asks = [&]() -> task<weft::tls::stream<holds_back>> {
      holds_back late{.raw = std::move(raw.here)};  // named: g++ 12 destroys twice what is an aggregate in a co_await
      auto one = co_await weft::tls::connect(client, std::move(late), "here.test");
      co_await one.write("q");
      co_return one;
    };
    auto [here, there] = co_await weft::when_all(asks(), weft::tls::accept(server, std::move(raw.there)));
    EXPECT_EQ(co_await test::read_some(there, 1), "q");
    EXPECT_EQ(unread(number), 0);
    const auto asks_again = [&, to = &here]() -> task<> {
      while (unread(number) == 0) co_await weft::yield();
      co_await to->write("q");
    };
    if (!answers) co_await weft::when_all(test::read_some(there, 1), asks_again());
    co_await there.write("a");
    EXPECT_EQ(co_await test::read_some(here, 1), "a");
    EXPECT_TRUE(co_await connects(client, server));
  }
}

// ---- the keys of tickets ----------------------------------------------------------------------------------------------------

constexpr long minute = 60, hour = 60 * minute;

// The name of the key of a ticket that the server gives to a client of OpenSSL's, which stands at its beginning.
task<std::string> name_of_key(server_context server, version by) {
  test::connection raw = co_await test::connected_by_tcp();
  std::string ticket;
  std::thread client{[&, number = raw.here.release()] {
    const std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context{SSL_CTX_new(TLS_client_method()), SSL_CTX_free};
    if (by == version::tls12) SSL_CTX_set_max_proto_version(context.get(), TLS1_2_VERSION);
    const std::unique_ptr<SSL, void (*)(SSL*)> one{SSL_new(context.get()), SSL_free};
    ::fcntl(number, F_SETFL, 0);
    SSL_set_fd(one.get(), number);
    char byte = 0;
    EXPECT_EQ(SSL_connect(one.get()), 1);
    EXPECT_EQ(SSL_read(one.get(), &byte, 1), 1);
    const unsigned char* text = nullptr;
    std::size_t size = 0;
    SSL_SESSION* const its = SSL_get1_session(one.get());
    SSL_SESSION_get0_ticket(its, &text, &size);
    ticket.assign(reinterpret_cast<const char*>(text), size);
    SSL_SESSION_free(its);
    ::close(number);
  }};
  auto accepting = weft::as_result(weft::tls::accept(server, std::move(raw.there)));
  auto got = co_await std::move(accepting);
  EXPECT_TRUE(got.has_value());
  if (got.has_value()) co_await got->write("x");
  client.join();
  EXPECT_GT(ticket.size(), 16U);
  co_return ticket.substr(0, 16);
}

WEFT_TEST("tls_resume: tickets get a new key each hour, and each context has its own, before and behind a reload") {
  const credentials mine = root().issue(), later = root().issue();
  const server_context server{{.certificate = mine.shown()}}, other{{.certificate = mine.shown()}};
  for (const version by : {version::tls12, version::tls13}) {
    const std::string first = co_await name_of_key(server, by);
    EXPECT_EQ(co_await name_of_key(server, by), first);
    EXPECT_NE(co_await name_of_key(other, by), first);
    server.reload(later.shown());
    EXPECT_EQ(co_await name_of_key(server, by), first);
    seconds_ahead = seconds_ahead + hour + minute;
    const std::string second = co_await name_of_key(server, by);
    EXPECT_NE(second, first);
    server.reload(mine.shown());
    EXPECT_EQ(co_await name_of_key(server, by), second);
  }
  seconds_ahead = 0;
}

WEFT_TEST("tls_resume: a ticket of the key before is taken, for as long as a ticket lasts, also behind a reload") {
  const credentials mine = root().issue({.until = 100 * hour});
  const server_context server{{.certificate = mine.shown()}};
  const client_context client{{.peer = verify::nothing}}, stranger{{.peer = verify::nothing}};  // the issuer expires
  EXPECT_FALSE(co_await connects(client, server));
  EXPECT_TRUE(co_await connects(client, server));
  EXPECT_TRUE(co_await connects(client, server)) << "who has used its ticket got another one";
  {
    const ahead later{hour + minute};
    EXPECT_TRUE(co_await connects(client, server));  // and gets one of the new key
    server.reload(mine.shown());
    EXPECT_TRUE(co_await connects(client, server));
  }
  {
    const ahead much_later{2 * hour + 30 * minute};  // of a ticket that is an hour and a half old
    EXPECT_TRUE(co_await connects(client, server));
  }
  {
    const ahead too_late{6 * hour};
    EXPECT_FALSE(co_await connects(client, server));
    EXPECT_TRUE(co_await connects(client, server));
  }
  // The clock was set back: there are keys again.
  EXPECT_FALSE(co_await connects(stranger, server));
  EXPECT_TRUE(co_await connects(stranger, server));
}

// ---- tickets that come in part --------------------------------------------------------------------------------------------

// A server by OpenSSL whose tickets are longer than its records, and come in two pieces: the second one a while after the first was
// taken. Then it says "world", and reads to the end.
class halting_server {
 public:
  halting_server(int number, const credentials& own)
      : peer_{number, &own}, number_{number}, in_{BIO_new(BIO_s_mem())}, out_{BIO_new(BIO_s_mem())} {
    BIO_set_mem_eof_return(in_, -1);
    SSL_set_bio(peer_.get(), in_, out_);
    SSL_set_max_send_fragment(peer_.get(), 512);
    done(SSL_CTX_set_session_ticket_cb(peer_.context(), add_much, ignore, nullptr) == 1);
  }

  /// Gives the rest of the tickets, which it has not sent. Before that, it sets `is_halfway`.
  std::string run_halfway(std::atomic<bool>& is_halfway) const {
    for (;;) {
      const bool is_over = peer_.handshake();
      if (is_over) break;
      send(taken());
      done(receive());
    }
    std::string tickets = taken();
    done(tickets.size() > 3000);
    send(std::string_view{tickets}.substr(0, 1200));
    for (int left = 1; left != 0; std::this_thread::yield()) done(::ioctl(number_, TIOCOUTQ, &left) == 0);
    is_halfway = true;
    is_halfway.notify_all();
    tickets.erase(0, 1200);
    return tickets;
  }

  /// What it has read up to a word that no more comes. Before that, it sets `is_halfway`.
  std::string run(std::atomic<bool>& is_halfway) const {
    const std::string rest = run_halfway(is_halfway);
    std::this_thread::sleep_for(std::chrono::milliseconds{20});  // so that who writes now finds a half
    send(rest);
    std::string all;
    for (;;) {
      std::string piece;  // one record's: there may be more of what was received
      do all += piece = peer_.read();
      while (!piece.empty());
      if ((SSL_get_shutdown(peer_.get()) & SSL_RECEIVED_SHUTDOWN) != 0) break;
      done(receive());
    }
    done(peer_.write("world"));
    SSL_shutdown(peer_.get());
    send(taken());
    return all;
  }

 private:
  static int add_much(SSL* of, void*) {
    static const std::string much(3000, 'x');
    return SSL_SESSION_set1_ticket_appdata(SSL_get_session(of), much.data(), much.size());
  }
  static SSL_TICKET_RETURN ignore(SSL*, SSL_SESSION*, const unsigned char*, std::size_t, SSL_TICKET_STATUS, void*) {
    return SSL_TICKET_RETURN_IGNORE_RENEW;
  }
  std::string taken() const {
    char* from = nullptr;
    const long size = BIO_get_mem_data(out_, &from);
    std::string all{from, static_cast<std::size_t>(size)};
    static_cast<void>(BIO_reset(out_));
    return all;
  }
  void send(std::string_view all) const {
    done(::send(number_, all.data(), all.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(all.size()));
  }
  bool receive() const {
    std::array<char, 4096> buffer;
    const ssize_t got = ::recv(number_, buffer.data(), buffer.size(), 0);
    return got > 0 && BIO_write(in_, buffer.data(), static_cast<int>(got)) == got;
  }

  test::openssl_peer peer_;
  int number_;
  BIO *in_, *out_;
};

// A read that is stopped once the half was taken.
task<> takes_the_half(const weft::tls::stream<>& from, const std::atomic<bool>& is_halfway) {
  std::array<std::byte, 8> buffer;
  while (!is_halfway) {
    auto reading = weft::as_result(weft::timeout(std::chrono::milliseconds{1}, from.read(buffer)));
    EXPECT_EQ((co_await std::move(reading)).error(), weft::errc::timed_out);
  }
}

TEST(tls_resume, a_write_that_is_stopped_while_it_waits_for_the_rest_of_a_ticket_closes_the_stream) {
  const credentials mine = root().issue();
  test::with_number raw = test::connected_to_number();
  std::atomic<bool> is_halfway{false};
  const halting_server server{raw.there, mine};
  const std::jthread its{[&] {
    try {
      server.run_halfway(is_halfway);
    } catch (const std::exception& failed) {
      ADD_FAILURE() << failed.what();
      is_halfway = true;
    }
  }};
  const auto body = [&]() -> task<> {
    auto here = co_await weft::tls::connect(test::client_of(root()), std::move(raw.here), "here.test");
    co_await takes_the_half(here, is_halfway);
    const auto stops = [&here](weft::scope& inside) -> task<> {
      auto writing = inside.fork_here(weft::as_result(here.write("hello")));  // it waits when this returns
      EXPECT_TRUE(here.is_open());
      writing.request_stop();
      EXPECT_TRUE((co_await std::move(writing)).is_stopped());
    };
    co_await weft::with_scope(stops);
    EXPECT_FALSE(here.is_open());
    if (here.is_open()) co_return;  // else the write would wait for ever
    EXPECT_EQ((co_await weft::as_result(here.write("hello"))).error(), weft::errc::closed);
  };
  weft::sync_wait(body());
}

// On threads of their own, which TSan sees.
TEST(tls_resume, who_writes_while_half_a_ticket_has_come_waits_for_the_rest) {
  const credentials mine = root().issue();
  for (const bool also_writes : {true, false}) {
    for (const bool also_reads : {true, false}) {
      test::with_number raw = test::connected_to_number();
      std::atomic<bool> is_halfway{false};
      std::string came, read;
      std::jthread server{[&, number = raw.there] {
        try {
          came = halting_server{number, mine}.run(is_halfway);
        } catch (const std::exception& failed) {
          came = failed.what();
          is_halfway = true;
          is_halfway.notify_all();
        }
      }};
      auto here = weft::sync_wait(weft::tls::connect(test::client_of(root()), std::move(raw.here), "here.test"));
      const auto reads = [&] {
        try {
          read = weft::sync_wait(test::read_to_end(here));
        } catch (const std::exception& failed) {
          read = failed.what();
        }
      };
      std::jthread reader;
      if (also_reads)
        reader = std::jthread{reads};
      else  // one that is stopped when it has taken the half
        EXPECT_TRUE(weft::sync_wait(weft::as_result(takes_the_half(here, is_halfway))).has_value());
      is_halfway.wait(false);
      std::error_code failed;
      const auto finish = [&]() -> task<> {
        if (also_writes) failed = (co_await weft::as_result(here.write("hello"))).error();
        if (!failed) failed = (co_await weft::as_result(here.shutdown())).error();
      };
      weft::sync_wait(finish());
      EXPECT_FALSE(failed) << failed.message();
      if (failed) here.close();
      if (also_reads)
        reader.join();
      else
        reads();
      server.join();
      EXPECT_EQ(came, also_writes ? "hello" : "");
      EXPECT_EQ(read, "world");
    }
  }
}

}  // namespace

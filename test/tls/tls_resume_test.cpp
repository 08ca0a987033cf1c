// What a session goes on with behind its handshake: tickets, which come later, and handshakes that are resumed by them.
#include <weft/tls.hpp>

#include <time.h>

#include <array>
#include <atomic>
#include <string>
#include <string_view>
#include <utility>
#include <weft/io.hpp>

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
using test::handshake;
using test::root;
using weft::task;
using weft::tls::client_certificates;
using weft::tls::client_context;
using weft::tls::errc;
using weft::tls::server_context;

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

}  // namespace

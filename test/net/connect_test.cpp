// Connections to whichever of several endpoints is first, and to names. See weft/resolve.hpp. As in net_test.cpp,
// WEFT_TEST_IN_RUNTIME has all bodies run in a runtime.
#include <weft/resolve.hpp>

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include <weft/combine.hpp>
#include <weft/fiber.hpp>
#include <weft/runtime.hpp>
#include <weft/scope.hpp>
#include <weft/timed.hpp>

#include "net/name_server.hpp"
#include "net/open_descriptors.hpp"
#include "net/sockets.hpp"

namespace {

using namespace std::chrono_literals;
using test::anywhere;
using test::open_descriptors;
using weft::as_result;
using weft::task;
using weft::net::endpoint;
using weft::net::listener;
using weft::net::stream;

using endpoints = std::vector<endpoint>;

bool has_v6() {
  const int number = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in6 at{};
  at.sin6_family = AF_INET6;
  at.sin6_addr = in6addr_loopback;
  const bool has = number >= 0 && ::bind(number, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0;
  ::close(number);
  return has;
}

// Nobody listens there, for a while at least: it is bound.
class refusing {
 public:
  explicit refusing(bool is_v6 = false) : number_{::socket(is_v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)} {
    sockaddr_storage its{};
    its.ss_family = is_v6 ? AF_INET6 : AF_INET;
    if (is_v6)
      reinterpret_cast<sockaddr_in6&>(its).sin6_addr = in6addr_loopback;
    else
      reinterpret_cast<sockaddr_in&>(its).sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = is_v6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
    EXPECT_EQ(::bind(number_, reinterpret_cast<const sockaddr*>(&its), size), 0);
    EXPECT_EQ(::getsockname(number_, reinterpret_cast<sockaddr*>(&its), &size), 0);
    at_ = is_v6 ? endpoint{"::1", ntohs(reinterpret_cast<sockaddr_in6&>(its).sin6_port)}
                : endpoint{"127.0.0.1", ntohs(reinterpret_cast<sockaddr_in&>(its).sin_port)};
  }
  refusing(const refusing&) = delete;
  ~refusing() { ::close(number_); }
  const endpoint& at() const noexcept { return at_; }
  int number() const noexcept { return number_; }

 private:
  const int number_;
  endpoint at_;
};

// A listener that has as many connections as it takes: the system drops all that ask for another one.
class black_hole : public refusing {
 public:
  black_hole() {
    EXPECT_EQ(::listen(number(), 0), 0);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(at().port());
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (bool is_full = false; !is_full;) {
      fills_.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
      if (::connect(fills_.back(), reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0) continue;
      pollfd one{.fd = fills_.back(), .events = POLLOUT, .revents = 0};
      is_full = ::poll(&one, 1, 100) == 0;
    }
  }
  ~black_hole() {
    for (const int one : fills_) ::close(one);
  }

 private:
  std::vector<int> fills_;
};

// That it is a connection to there.
task<> expect_connected(const stream& here, const listener& there) {
  const stream peer = co_await there.accept();
  EXPECT_EQ(here.peer(), there.local());
  EXPECT_EQ(here.local(), peer.peer());
  co_await here.write("x");
  EXPECT_EQ(co_await test::read_exactly(peer, 1), "x");
}

TEST(connect_to_several, takes_the_only_one) {
  const auto body = []() -> task<> {
    const listener at = co_await weft::net::listen(anywhere);
    const endpoints all{at.local()};
    const stream made = co_await weft::net::connect(all);
    co_await expect_connected(made, at);
  };
  test::run_body(body());
}

TEST(connect_to_several, goes_on_at_once_where_one_refuses) {
  const refusing first, second;
  const auto body = [&]() -> task<> {
    const listener at = co_await weft::net::listen(anywhere);
    const endpoints all{first.at(), second.at(), at.local()};
    const std::size_t open = open_descriptors();
    const stream made = co_await weft::net::connect({.delay = 1h}, all);
    EXPECT_EQ(open_descriptors(), open + 1);
    co_await expect_connected(made, at);
  };
  test::run_body(body());
}

TEST(connect_to_several, goes_on_behind_a_delay_where_one_is_silent) {
  const black_hole silent;
  const auto body = [&]() -> task<> {
    const listener at = co_await weft::net::listen(anywhere);
    const endpoints all{silent.at(), silent.at(), at.local(), silent.at()};
    const std::size_t open = open_descriptors();
    {
      const stream made = co_await weft::net::connect({.delay = 5ms}, all);
      EXPECT_EQ(open_descriptors(), open + 1);
      co_await expect_connected(made, at);
    }
    EXPECT_EQ(open_descriptors(), open);
  };
  test::run_body(body());
}

TEST(connect_to_several, begins_with_the_first_family_and_takes_them_in_turn) {
  if (!has_v6()) GTEST_SKIP() << "this machine has no IPv6";
  const refusing a, b, c, v6_a{true}, v6_b{true};
  const auto body = [&]() -> task<> {
    const endpoints all{v6_a.at(), a.at(), b.at(), c.at(), v6_b.at()};
    const auto how = co_await as_result(weft::net::connect(all));
    EXPECT_EQ(how.error(), std::errc::connection_refused);
    try {
      static_cast<void>(how.value());
    } catch (const weft::error& failure) {
      std::string expected = "connect ";
      for (const refusing* one : {&v6_a, &a, &v6_b, &b, &c})
        expected += one->at().to_string() + " (Connection refused)" + (one == &c ? ": " : ", ");
      EXPECT_EQ(failure.what(), expected + "Connection refused");
    }
  };
  test::run_body(body());
}

TEST(connect_to_several, takes_v4_where_v6_refuses) {
  if (!has_v6()) GTEST_SKIP() << "this machine has no IPv6";
  const refusing v6{true};
  const auto body = [&]() -> task<> {
    const listener at = co_await weft::net::listen(anywhere);
    const endpoints all{v6.at(), at.local()};
    const stream made = co_await weft::net::connect({.delay = 1h}, all);
    co_await expect_connected(made, at);
  };
  test::run_body(body());
}

// The first error's code, which is not that of all.
TEST(connect_to_several, fails_as_the_first_one_did) {
  const refusing second;
  const auto body = [&]() -> task<> {
    const endpoints all{endpoint{"255.255.255.255", 9}, second.at()};
    const auto how = co_await as_result(weft::net::connect(all));
    EXPECT_TRUE(how.error() == std::errc::network_unreachable || how.error() == std::errc::permission_denied)
        << how.error().message();
    try {
      static_cast<void>(how.value());
    } catch (const weft::error& failure) {
      EXPECT_NE(std::string{failure.what()}.find("(Connection refused)"), std::string::npos) << failure.what();
    }
  };
  test::run_body(body());
}

TEST(connect_to_several, refuses_an_empty_list) {
  const auto body = []() -> task<> {
    const endpoints none;
    const auto how = co_await as_result(weft::net::connect(none));
    EXPECT_EQ(how.error(), std::errc::invalid_argument);
  };
  test::run_body(body());
}

TEST(connect_to_several, has_a_timeout_for_all_of_it) {
  const black_hole silent;
  const auto body = [&]() -> task<> {
    const listener another = co_await weft::net::listen(anywhere);  // what it waits by is there
    const endpoints all{silent.at(), silent.at(), silent.at()};
    const std::size_t open = open_descriptors();
    const auto how = co_await as_result(weft::net::connect({.delay = 1ms, .timeout = 20ms}, all));
    EXPECT_EQ(how.error(), weft::errc::timed_out);
    EXPECT_EQ(open_descriptors(), open);
  };
  test::run_body(body());
}

// Whoever has lost is told so by the time that it returns.
TEST(connect_to_several, has_closed_the_losers_when_it_returns) {
  const auto body = []() -> task<> {
    const listener one = co_await weft::net::listen(anywhere), other = co_await weft::net::listen(anywhere);
    const endpoints all{one.local(), other.local()};
    for (int i = 0; i != test::rounds(20); ++i) {
      const std::size_t open = open_descriptors();
      const stream made = co_await weft::net::connect({.delay = 0ms}, all);
      EXPECT_EQ(open_descriptors(), open + 1);
      const bool first_won = made.peer() == one.local();
      co_await expect_connected(made, first_won ? one : other);
      const listener& lost = first_won ? other : one;
      pollfd asked{.fd = lost.native_handle(), .events = POLLIN, .revents = 0};
      if (::poll(&asked, 1, 0) != 1) continue;
      const stream loser = co_await lost.accept();
      EXPECT_EQ(co_await test::read_all(loser), "");
    }
  };
  test::run_body(body());
}

TEST(connect_to_several, works_in_fibers_and_on_threads) {
  const refusing first;
  weft::runtime rt{{.threads = 2}};
  const auto in_fiber = [&](weft::scope& inside) -> task<> {
    const listener at = co_await weft::net::listen(anywhere);
    const endpoints all{first.at(), at.local()};
    auto fiber = inside.go([&] { return weft::await(weft::net::connect(all)); });
    const stream made = co_await std::move(fiber);
    co_await expect_connected(made, at);
  };
  rt.run(weft::with_scope(in_fiber));
  const listener at = weft::sync_wait(weft::net::listen(anywhere));
  const endpoints all{first.at(), at.local()};
  const stream made = weft::sync_wait(weft::net::connect(all));
  weft::sync_wait(expect_connected(made, at));
}

// ---- by name --------------------------------------------------------------------------------------------------------------

TEST(connect_to_a_name, asks_for_it_and_connects) {
  test::name_server names{[](const test::question& asked) { return test::answer(asked, {"127.0.0.1", "127.0.0.2"}); }};
  const auto body = [&]() -> task<> {
    const endpoint server[] = {names.at()};
    const listener at = co_await weft::net::listen(anywhere);
    const weft::net::connect_options options{.timeout = 10min, .names = {.servers = server, .timeout = 60s}};
    const std::string port = std::to_string(at.local().port());
    const stream made = co_await weft::net::connect(options, "db.test", port);
    co_await expect_connected(made, at);
    const stream by_number = co_await weft::net::connect("127.0.0.1", port);
    co_await expect_connected(by_number, at);
  };
  test::run_body(body());
  EXPECT_GT(names.asked(), 0);
}

TEST(connect_to_a_name, says_whom_it_has_tried) {
  const refusing nobody;
  test::name_server names{[](const test::question& asked) { return test::answer(asked, {"127.0.0.1"}); }};
  const auto body = [&]() -> task<> {
    const endpoint server[] = {names.at()};
    const std::string port = std::to_string(nobody.at().port());
    const weft::net::connect_options options{.names = {.servers = server, .timeout = 60s}};
    const auto how = co_await as_result(weft::net::connect(options, "db.test", port));
    EXPECT_EQ(how.error(), std::errc::connection_refused);
    try {
      static_cast<void>(how.value());
    } catch (const weft::error& failure) {
      EXPECT_EQ(std::string{failure.what()}, "connect db.test, service " + port + ", by 127.0.0.1:" + port +
                                                 " (Connection refused): Connection refused");
    }
    const auto none = co_await as_result(weft::net::connect(options, "a..b", port));
    EXPECT_EQ(none.error(), weft::net::resolve_errc::bad_name);
  };
  test::run_body(body());
}

TEST(connect_to_a_name, has_one_timeout_for_both) {
  test::name_server silent{[](const test::question&) -> std::optional<std::string> { return std::nullopt; }};
  const auto body = [&]() -> task<> {
    const endpoint server[] = {silent.at()};
    const weft::net::connect_options options{.timeout = 20ms, .names = {.servers = server}};
    const auto how = co_await as_result(weft::net::connect(options, "db.test", "80"));
    EXPECT_EQ(how.error(), weft::errc::timed_out);
  };
  test::run_body(body());
}

}  // namespace

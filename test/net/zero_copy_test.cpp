// Writes that lend their memory: stream::write_zero_copy(). Over loopback, where the system lends and reports as it does for
// any network, but copies in the end. In a run of the test kit, in runtimes on each back end, in fibers and on plain threads.
#include <weft/net.hpp>

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <string>
#include <system_error>
#include <utility>
#include <weft/clock.hpp>
#include <weft/combine.hpp>
#include <weft/fiber.hpp>
#include <weft/runtime.hpp>
#include <weft/scope.hpp>
#include <weft/test.hpp>
#include <weft/timed.hpp>

#include "net/sockets.hpp"
#include "support/weft_test.hpp"

namespace {

using namespace std::chrono_literals;
using test::bytes;
using test::connected;
using test::connected_by_tcp;
using test::connection;
using test::read_all;
using weft::as_result;
using weft::task;
using weft::net::stream;

std::string numbered(std::size_t size) {
  std::string text(size, '\0');
  for (std::size_t i = 0; i != size; ++i) text[i] = static_cast<char>(i * 31 >> 4);
  return text;
}

bool has_lent(const stream& by) {
  int on = 0;
  socklen_t size = sizeof on;
  EXPECT_EQ(::getsockopt(by.native_handle(), SOL_SOCKET, SO_ZEROCOPY, &on, &size), 0);
  return on != 0;
}
bool has_reports(const stream& by) {
  msghdr message{};
  return ::recvmsg(by.native_handle(), &message, MSG_ERRQUEUE | MSG_DONTWAIT) >= 0;
}

task<> writes_much() {
  const std::string text = numbered(3'000'000);
  const connection by = co_await connected_by_tcp();
  const auto sends = [&]() -> task<> {
    for (int i = 0; i != 3; ++i) {
      co_await by.here.write_zero_copy(bytes(text));
      EXPECT_FALSE(has_reports(by.here)) << "it has ended before all its memory was back";
      co_await by.here.write("then");
    }
    by.here.shutdown();
  };
  auto both = weft::when_all(sends(), read_all(by.there));
  const auto [none, got] = co_await std::move(both);
  EXPECT_TRUE(has_lent(by.here));
  const std::string once = text + "then";
  EXPECT_TRUE(got == once + once + once);
}

TEST(write_zero_copy, writes_all_of_it) {
  weft::test::run(writes_much);
  weft::sync_wait(writes_much());
  for (const weft::io_backend by : {weft::io_backend::automatic, weft::io_backend::epoll})
    for (const unsigned threads : {1U, 2U}) weft::runtime{{.threads = threads, .io = by}}.run(writes_much());
}

TEST(write_zero_copy, works_in_a_fiber_beside_a_read) {
  for (const weft::io_backend by : {weft::io_backend::automatic, weft::io_backend::epoll})
    weft::runtime{{.threads = 1, .io = by}}.run([]() -> task<> {
      const std::string text = numbered(2'000'000);
      const connection by = co_await connected_by_tcp();
      auto body = [&](weft::scope& s) -> task<> {
        auto sends = s.go([&] { weft::await(by.here.write_zero_copy(bytes(text))); });
        auto reads = s.fork(test::read_exactly(by.here, 4));  // woken by reports, too
        EXPECT_TRUE(co_await test::read_exactly(by.there, text.size()) == text);
        co_await by.there.write("done");
        co_await std::move(sends);
        EXPECT_EQ(co_await std::move(reads), "done");
      };
      co_await weft::with_scope(body);
    }());
}

// What is small is copied, and so is what goes by a socket that can't lend.
TEST(write_zero_copy, copies_where_that_is_better) {
  weft::test::run([]() -> task<> {
    const connection by = co_await connected_by_tcp();
    co_await by.here.write_zero_copy(bytes(numbered(stream::zero_copy_least - 1)));
    EXPECT_FALSE(has_lent(by.here));
    EXPECT_EQ((co_await test::read_exactly(by.there, stream::zero_copy_least - 1)).size(), stream::zero_copy_least - 1);
    const connection local = connected();
    const std::string text = numbered(500'000);
    auto both = weft::when_all(local.here.write_zero_copy(bytes(text)), test::read_exactly(local.there, text.size()));
    const auto [none, got] = co_await std::move(both);
    EXPECT_TRUE(got == text);
  });
}

// The peer does not read: what is stopped then resets the connection, and has its memory back.
TEST(write_zero_copy, resets_the_connection_where_it_is_stopped_half_way) {
  const auto body = []() -> task<> {
    const std::string text = numbered(30'000'000);
    const connection by = co_await connected_by_tcp();
    const auto stops = [&](weft::scope& inside) -> task<> {
      auto writing = inside.fork(as_result(by.here.write_zero_copy(bytes(text))));
      while (!test::is_readable(by.there)) co_await weft::sleep_for(1ms);
      writing.request_stop();
      EXPECT_TRUE((co_await std::move(writing)).is_stopped());
    };
    co_await weft::with_scope(stops);
    EXPECT_FALSE(has_reports(by.here));
    EXPECT_EQ((co_await as_result(by.here.write("x"))).error(), weft::errc::closed);
    std::string got;
    std::array<std::byte, 100'000> room;
    for (;;) {
      auto reading = as_result(by.there.read(room));
      const auto some = co_await std::move(reading);
      if (some.error()) {
        EXPECT_EQ(some.error(), std::errc::connection_reset);
        break;
      }
      EXPECT_NE(*some, 0U) << "a part looks like the whole";
      if (*some == 0) break;
      got.append(reinterpret_cast<const char*>(room.data()), *some);
    }
    EXPECT_LT(got.size(), text.size());
    EXPECT_TRUE(text.starts_with(got));
  };
  weft::test::run(body);
  for (const weft::io_backend by : {weft::io_backend::automatic, weft::io_backend::epoll})
    for (const unsigned threads : {1U, 2U}) weft::runtime{{.threads = threads, .io = by}}.run(body());
}

TEST(write_zero_copy, fails_where_it_is_closed_while_memory_is_lent) {
  const auto body = []() -> task<> {
    const std::string text = numbered(30'000'000);
    connection by = co_await connected_by_tcp();
    const auto closes = [&]() -> task<> {
      co_await weft::sleep_for(20ms);
      by.here.close();
    };
    auto both = weft::when_all(as_result(by.here.write_zero_copy(bytes(text))), closes());
    const auto [how, none] = co_await std::move(both);
    EXPECT_EQ(how.error(), weft::errc::closed);
    EXPECT_EQ((co_await as_result(by.here.write_zero_copy(bytes(text)))).error(), weft::errc::closed);
    EXPECT_EQ((co_await as_result(stream{}.write_zero_copy(bytes(text)))).error(), weft::errc::closed);
  };
  weft::test::run(body);
  for (const weft::io_backend by : {weft::io_backend::automatic, weft::io_backend::epoll})
    weft::runtime{{.threads = 1, .io = by}}.run(body());
}

TEST(write_zero_copy, fails_where_its_peer_resets) {
  weft::test::run([]() -> task<> {
    const std::string text = numbered(30'000'000);
    connection by = co_await connected_by_tcp();
    const auto resets = [&]() -> task<> {
      co_await weft::sleep_for(1ms);
      by.there = {};  // with bytes that were not read
    };
    auto both = weft::when_all(as_result(by.here.write_zero_copy(bytes(text))), resets());
    const auto [how, none] = co_await std::move(both);
    EXPECT_TRUE(how.error() == std::errc::connection_reset || how.error() == weft::errc::closed) << how.error();
  });
}

// All is lent, and the system lets go of it by the reset: that is no success.
TEST(write_zero_copy, fails_where_its_peer_resets_before_it_has_got_all) {
  const auto body = [](bool reads) -> task<> {
    const std::string text = numbered(100'000);
    connection by = co_await connected_by_tcp();
    by.there.set_receive_buffer(4096);
    by.here.set_send_buffer(4'000'000);
    const auto resets = [&]() -> task<> {
      co_await weft::sleep_for(20ms);  // all is lent
      by.there = {};                   // with bytes that were not read
    };
    const auto beside = [&]() -> task<> {  // may take the error
      std::array<std::byte, 1> none;
      if (!reads) co_return;
      auto reading = as_result(by.here.read(none));
      static_cast<void>(co_await std::move(reading));
    };
    auto all = weft::when_all(as_result(by.here.write_zero_copy(bytes(text))), beside(), resets());
    const auto [how, none, neither] = co_await std::move(all);
    EXPECT_TRUE(how.error() == std::errc::connection_reset || how.error() == weft::errc::closed) << how.error();
    auto writing = as_result(by.here.write("x"));
    const auto next = co_await std::move(writing);
    EXPECT_EQ(next.error(), weft::errc::closed);
  };
  for (const bool reads : {false, true}) {
    weft::test::run([&] { return body(reads); });
    for (const weft::io_backend by : {weft::io_backend::automatic, weft::io_backend::epoll})
      for (const unsigned threads : {1U, 2U}) weft::runtime{{.threads = threads, .io = by}}.run(body(reads));
  }
}

TEST(write_zero_copy_death, beside_a_write) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(weft::test::run([]() -> task<> {
                 const std::string text = numbered(30'000'000);
                 const connection by = co_await connected_by_tcp();
                 co_await weft::when_all(by.here.write_zero_copy(bytes(text)), by.here.write("x"));
               }),
               "two tasks write to one stream at once");
}

}  // namespace

// TCP on real sockets of this machine, in a runtime and outside of one. See weft/net.hpp.
//
// With WEFT_TEST_IN_RUNTIME=epoll or =uring in the environment all bodies run in a runtime, and all runtimes wait by that, or
// by epoll where the system has no rings.
#include "support/weft_test.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>
#include <weft/combine.hpp>
#include <weft/fiber.hpp>
#include <weft/net.hpp>
#include <weft/observe.hpp>
#include <weft/pool.hpp>
#include <weft/runtime.hpp>
#include <weft/scope.hpp>
#include <weft/select.hpp>
#include <weft/with.hpp>

#include "net/sockets.hpp"

namespace {

static_assert(sizeof(weft::detail::descriptor) == 128, "10,000 connections are 10,000 of them");

using namespace std::chrono_literals;
using weft::scope;
using weft::task;
using weft::net::endpoint;
using weft::net::listener;
using weft::net::stream;

using test::anywhere;
using test::bytes;
using test::connected;
using test::connected_by_tcp;
using test::connection;
using test::read_all;
using test::read_exactly;

task<> echo(stream peer) {
  std::array<std::byte, 512> buffer;
  while (const std::size_t size = co_await peer.read(buffer)) co_await peer.write(std::span{buffer}.first(size));
}

task<> serve(scope& inside, const listener& at) {
  for (;;) inside.fork(echo(co_await at.accept()));
}

task<std::string> ask(endpoint where, std::string_view question) {
  stream to = co_await weft::net::connect(where);
  co_await to.write(question);
  to.shutdown();
  co_return co_await read_all(to);
}

task<int> ask_many(int clients, int questions) {
  const listener at = co_await weft::net::listen(anywhere);
  int right = 0;
  const auto body = [&](scope& inside) -> task<> {
    inside.fork(serve(inside, at));
    for (int i = 0; i != questions; ++i) {
      std::vector<task<std::string>> those;
      for (int one = 0; one != clients; ++one) those.push_back(ask(at.local(), "question"));
      for (const std::string& answer : co_await weft::when_all(std::move(those))) right += answer == "question" ? 1 : 0;
    }
    inside.request_stop();
  };
  co_await weft::with_scope(body);
  co_return right;
}

// ---- endpoints ------------------------------------------------------------------------------------------------------------

TEST(endpoint, is_parsed_and_printed) {
  for (const char* text : {"127.0.0.1:80", "0.0.0.0:0", "255.255.255.255:65535", "[::1]:443", "[2001:db8::7]:1",
                           "[::]:0", "[fe80::1%1]:9"})
    EXPECT_EQ(endpoint::parse(text).to_string(), text);
  EXPECT_EQ(endpoint::parse("[0:0::1]:5").to_string(), "[::1]:5");
  EXPECT_EQ(endpoint("::1", 7).address(), "::1");
  EXPECT_EQ(endpoint("10.0.0.1", 7).port(), 7);
  EXPECT_TRUE(endpoint("::1", 7).is_v6());
  EXPECT_EQ(endpoint("fe80::1%lo", 7), endpoint("fe80::1%1", 7));
  EXPECT_EQ(endpoint{}.to_string(), "0.0.0.0:0");
  EXPECT_LT(endpoint("10.0.0.1", 7), endpoint("10.0.0.1", 8));
}

TEST(endpoint, refuses_what_is_none) {
  for (const char* text : {"", ":", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1: 1",
                           "1.2.3:4", "::1:80", "[127.0.0.1]:80", "[::1]", "[::1]80", "[::1", "[]:1", "host:80",
                           "01.2.3.4567:1", "[fe80::1%no-such-device]:1", "127.0.0.1%1:80", "127.0.0.1:80 "})
    EXPECT_THROW(static_cast<void>(endpoint::parse(text)), weft::error) << text;
  EXPECT_THROW((endpoint{std::string_view{"127.0.0.1\0x", 11}, 1}), weft::error);
}

// ---- from wherever --------------------------------------------------------------------------------------------------------

TEST(net, serves_in_a_runtime) {
  for (const unsigned threads : {1u, 2u, 4u}) {
    weft::runtime rt{{.threads = threads}};
    EXPECT_EQ(rt.run(ask_many(8, test::rounds(50))), 8 * test::rounds(50));
    EXPECT_EQ(rt.stats().watched, 0u);
    EXPECT_GT(rt.stats().changes, 0u);
  }
}

TEST(net, serves_on_a_plain_thread) { EXPECT_EQ(weft::sync_wait(ask_many(4, 10)), 40); }

TEST(net, serves_on_a_pool_and_on_a_strand) {
  weft::pool workers{{.threads = 2}};
  EXPECT_EQ(workers.run(ask_many(4, 10)), 40);
  weft::strand one{workers};
  EXPECT_EQ(weft::sync_wait(weft::start_on(one, ask_many(4, 10))), 40);
}

TEST(net, a_strand_on_a_runtime_has_its_sockets_there) {
  weft::runtime rt{{.threads = 2}};
  weft::strand one{rt};
  EXPECT_EQ(weft::sync_wait(weft::start_on(one, ask_many(4, 10))), 40);
  EXPECT_GT(rt.stats().changes, 0u);
  weft::worker_group group{1};
  EXPECT_EQ(weft::sync_wait(weft::start_on(rt.workers().worker(0), ask_many(4, 10))), 40);
}

TEST(net, serves_fibers) {
  weft::runtime rt{{.threads = 2}};
  const auto body = [](scope& inside) -> task<std::string> {
    const listener at = co_await weft::net::listen(anywhere);
    inside.go([&at] {
      const stream peer = weft::await(at.accept());
      std::array<std::byte, 16> buffer;
      while (const std::size_t size = weft::await(peer.read(buffer)))
        weft::await(peer.write(std::span<const std::byte>{buffer}.first(size)));
    });
    co_return co_await inside.go([&at] { return weft::await(ask(at.local(), "from a fiber")); });
  };
  EXPECT_EQ(rt.run(weft::with_scope(body)), "from a fiber");
}

TEST(net, of_a_runtime_may_be_awaited_by_a_plain_thread) {
  weft::runtime rt{{.threads = 1}};
  connection both = rt.run([]() -> task<connection> { co_return connected(); }());
  std::jthread writer{[&] { weft::sync_wait(both.there.write("across")); }};
  EXPECT_EQ(weft::sync_wait(read_exactly(both.here, 6)), "across");
}

// ---- reads ----------------------------------------------------------------------------------------------------------------

WEFT_TEST("stream: a read that is stopped has had no effect") {
  const connection both = connected();
  for (int i = 0; i != 20; ++i) {
    auto poisoned = std::make_unique<std::array<std::byte, 64>>();
    const auto stopped = co_await weft::as_result(weft::timeout(1ms, both.here.read(*poisoned)));
    EXPECT_EQ(stopped.error(), weft::errc::timed_out);
    poisoned.reset();
    co_await both.there.write("kept");
    EXPECT_EQ(co_await read_exactly(both.here, 4), "kept");
  }
}

WEFT_TEST("stream: a read that was told to stop before does not read") {
  const connection both = connected();
  co_await both.there.write("kept");
  std::array<std::byte, 4> buffer;
  weft::stop_source source;
  source.request_stop();
  const auto read = [&] { return both.here.read(buffer); };
  EXPECT_TRUE((co_await weft::as_result(weft::with_stop(source.token(), read))).is_stopped());
  EXPECT_EQ(co_await read_exactly(both.here, 4), "kept");
}

WEFT_TEST("stream: many silent reads time out together") {
  std::vector<connection> those;
  for (int i = 0; i != 1000; ++i) those.push_back(connected());
  std::vector<std::array<std::byte, 8>> buffers(those.size());
  std::vector<task<std::size_t>> reads;
  for (std::size_t i = 0; i != those.size(); ++i) reads.push_back(those[i].here.read(buffers[i]));
  const auto all = co_await weft::as_result(weft::timeout(20ms, weft::when_all(std::move(reads))));
  EXPECT_EQ(all.error(), weft::errc::timed_out);
  for (const connection& one : those) {
    co_await one.there.write("late");
    EXPECT_EQ(co_await read_exactly(one.here, 4), "late");
  }
}

WEFT_TEST("stream: data and the end come as one change") {
  for (int i = 0; i != 50; ++i) {
    connection both = co_await connected_by_tcp();
    const auto body = [&](scope& inside) -> task<> {
      auto all = inside.fork(read_all(both.here));
      co_await weft::yield();
      co_await both.there.write("the last words");
      both.there = stream{};
      EXPECT_EQ(co_await std::move(all), "the last words");
    };
    co_await weft::with_scope(body);
    std::array<std::byte, 4> buffer;
    EXPECT_EQ(co_await both.here.read(buffer), 0u);
    EXPECT_EQ(co_await both.here.read(buffer), 0u);
  }
}

// A read ends before a byte that is urgent, and more is there behind it.
WEFT_TEST("stream: a peer that sends what is urgent is heard to its end") {
  const connection both = co_await connected_by_tcp();
  for (int i = 0; i != 3; ++i) {
    const int there = both.there.native_handle();
    EXPECT_EQ(::send(there, "abc", 3, 0), 3);
    EXPECT_EQ(::send(there, "!", 1, MSG_OOB), 1);
    EXPECT_EQ(::send(there, "defg", 4, 0), 4);
    std::string text;
    while (text.size() != 7) text += (co_await both.here.receive()).text();
    EXPECT_EQ(text, "abcdefg");
  }
}

WEFT_TEST("stream: receives into buffers that are lent") {
  const connection both = connected();
  std::string large(1 << 18, '\0');
  for (std::size_t i = 0; i != large.size(); ++i) large[i] = static_cast<char>(i * 31 >> 4);
  const auto write = [](const stream& to, std::string_view text) -> task<> {
    co_await to.write(text);
    to.shutdown();
  };
  const auto receive = [](const stream& from) -> task<std::string> {
    std::string text;
    weft::net::lent_buffer kept;
    for (;;) {
      weft::net::lent_buffer got = co_await from.receive();
      if (got.empty()) break;
      text += got.text();
      kept = std::move(got);
      EXPECT_TRUE(got.empty());
    }
    EXPECT_TRUE(std::string_view{text}.ends_with(kept.text()));
    co_return text;
  };
  const auto [none, got] = co_await weft::when_all(write(both.here, large), receive(both.there));
  EXPECT_TRUE(got == large);
  EXPECT_TRUE((co_await both.there.receive()).empty());
}

WEFT_TEST("stream: a receive that is stopped has had no effect") {
  const connection both = connected();
  for (int i = 0; i != 20; ++i) {
    const auto stopped = co_await weft::as_result(weft::timeout(1ms, both.here.receive()));
    EXPECT_EQ(stopped.error(), weft::errc::timed_out);
    co_await both.there.write("kept");
    EXPECT_EQ((co_await both.here.receive()).text(), "kept");
  }
}

WEFT_TEST("stream: an empty read gives nothing, and does not wait") {
  const connection both = connected();
  EXPECT_EQ(co_await both.here.read({}), 0u);
  EXPECT_EQ(co_await both.here.write_some({}), 0u);
  co_await both.here.write(std::string_view{});
}

WEFT_TEST("stream: a connection that its peer resets fails") {
  connection both = co_await connected_by_tcp();
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(both.there.native_handle(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  both.there = stream{};
  std::array<std::byte, 4> buffer;
  const auto read = co_await weft::as_result(both.here.read(buffer));
  EXPECT_EQ(read.error(), std::errc::connection_reset);
  EXPECT_EQ((co_await weft::as_result(both.here.write("lost"))).error(), weft::errc::closed);
}

TEST(stream_misuse, two_readers_end_the_program) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(weft::sync_wait([]() -> task<> {
                 const connection both = connected();
                 std::array<std::byte, 4> a, b;
                 co_await weft::when_all(both.here.read(a), both.here.read(b));
               }()),
               "two tasks read from one stream at once");
}

TEST(stream_misuse, one_that_receives_is_a_reader) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(weft::sync_wait([]() -> task<> {
                 const connection both = connected();
                 std::array<std::byte, 4> a;
                 co_await weft::when_all(both.here.read(a), both.here.receive());
               }()),
               "two tasks read from one stream at once");
}

TEST(stream_misuse, two_writers_end_the_program) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(weft::sync_wait([]() -> task<> {
                 const connection both = connected();
                 const std::string large(1 << 22, 'x');
                 co_await weft::when_all(both.here.write(large), both.here.write(large));
               }()),
               "two tasks write to one stream at once");
}

// ---- several parts --------------------------------------------------------------------------------------------------------

using parts_to_fill = std::vector<std::span<std::byte>>;
using parts_to_send = std::vector<std::span<const std::byte>>;

// Parts of `buffer`, one after the other.
parts_to_fill cut(std::string& buffer, std::initializer_list<std::size_t> sizes) {
  parts_to_fill parts;
  std::span<std::byte> left = std::as_writable_bytes(std::span{buffer});
  for (const std::size_t size : sizes) {
    parts.push_back(left.first(size));
    left = left.subspan(size);
  }
  return parts;
}

task<> read_into_parts(const connection& both) {
  std::string buffer(10, '.');
  const parts_to_fill parts = cut(buffer, {0, 2, 0, 3, 5});
  co_await both.there.write("abc");
  EXPECT_EQ(co_await both.here.read(parts), 3u);
  EXPECT_EQ(buffer, "abc.......") << "a part is filled before the next one";
  co_await both.there.write("ABCDEFGHIJKL");
  EXPECT_EQ(co_await both.here.read(parts), 10u);
  EXPECT_EQ(buffer, "ABCDEFGHIJ");
  EXPECT_EQ(co_await both.here.read(parts), 2u) << "what is behind a full read is reported no more";
  EXPECT_EQ(buffer, "KLCDEFGHIJ");
  both.there.shutdown();
  EXPECT_EQ(co_await both.here.read(parts), 0u);
}

WEFT_TEST("stream: reads into several parts") {
  const connection by_unix = connected();
  co_await read_into_parts(by_unix);
  const connection by_tcp = co_await connected_by_tcp();
  co_await read_into_parts(by_tcp);
}

WEFT_TEST("stream: a read fills 64 parts, and empty ones before the first are none of them") {
  const connection both = connected();
  std::string buffer(100, '.');
  parts_to_fill parts(70);  // empty
  for (std::size_t i = 0; i != buffer.size(); ++i)
    parts.push_back(std::as_writable_bytes(std::span{buffer}).subspan(i, 1));
  co_await both.there.write(std::string(100, 'x'));
  EXPECT_EQ(co_await both.here.read(parts), 64u);
  EXPECT_EQ(buffer, std::string(64, 'x') + std::string(36, '.'));
  EXPECT_EQ(co_await both.here.read(parts), 36u);
}

WEFT_TEST("stream: a read and a write of nothing but empty parts give nothing, and do not wait") {
  const connection both = connected();
  const parts_to_fill into(3);
  const parts_to_send data(3);
  EXPECT_EQ(co_await both.here.read(into), 0u);
  EXPECT_EQ(co_await both.here.write_some(data), 0u);
  EXPECT_EQ(co_await both.here.read(parts_to_fill{}), 0u);
  EXPECT_EQ(co_await both.here.write_some(parts_to_send{}), 0u);
}

WEFT_TEST("stream: a read into parts that is stopped has had no effect") {
  const connection both = connected();
  std::string buffer(6, '.');
  const parts_to_fill parts = cut(buffer, {1, 5});
  for (int i = 0; i != 20; ++i) {
    EXPECT_EQ((co_await weft::as_result(weft::timeout(1ms, both.here.read(parts)))).error(), weft::errc::timed_out);
    EXPECT_EQ(buffer, "......");
  }
  co_await both.there.write("kept");
  EXPECT_EQ(co_await both.here.read(parts), 4u);
  EXPECT_EQ(buffer, "kept..");
}

WEFT_TEST("stream: writes some of several parts, and leaves their array as it was") {
  const connection both = connected();
  std::string sent;
  for (std::size_t i = 0; i != 1 << 20; ++i) sent += static_cast<char>(i * 31 >> 4);
  const auto writes = [&]() -> task<> {
    std::span<const std::byte> left = bytes(sent);
    while (!left.empty()) {
      parts_to_send parts(70);  // empty
      for (std::size_t from = 0; from < left.size() && parts.size() != 170; from += 1000)
        parts.push_back(left.subspan(from, std::min<std::size_t>(1000, left.size() - from)));
      const std::size_t first = parts[70].size();
      const std::size_t some = co_await both.here.write_some(parts);
      EXPECT_GT(some, 0u);
      EXPECT_LE(some, 64'000u);
      EXPECT_EQ(parts[70].size(), first);
      left = left.subspan(some);
    }
    both.here.shutdown();
  };
  const auto [none, got] = co_await weft::when_all(writes(), read_all(both.there));
  EXPECT_TRUE(got == sent);
}

WEFT_TEST("stream: a write of some parts that is stopped, for want of room, has had no effect") {
  const connection both = connected();
  const std::string large(1 << 16, 'x');
  const parts_to_send parts{bytes(large), {}, bytes(large)};
  std::size_t before = 0;  // until there is no more room
  for (;;) {
    const auto some = co_await weft::as_result(weft::timeout(1ms, both.here.write_some(parts)));
    if (some.error()) break;
    before += *some;
  }
  EXPECT_EQ((co_await read_exactly(both.there, before)).size(), before);
  co_await both.here.write("room");
  EXPECT_EQ(co_await read_exactly(both.there, 4), "room");
}

WEFT_TEST("stream: of several parts, too, nobody reads or writes what is closed") {
  connection both = connected();
  std::string buffer(6, '.');
  const parts_to_fill into = cut(buffer, {1, 5});
  const parts_to_send data{bytes("a"), bytes("b")};
  const auto body = [&](scope& inside) -> task<> {
    auto read = inside.fork(weft::as_result(both.here.read(into)));
    co_await weft::sleep_for(100us);
    both.here.close();
    EXPECT_EQ((co_await std::move(read)).error(), weft::errc::closed);
  };
  co_await weft::with_scope(body);
  EXPECT_EQ((co_await weft::as_result(both.here.write_some(data))).error(), weft::errc::closed);
  EXPECT_EQ((co_await weft::as_result(stream{}.read(into))).error(), weft::errc::closed);
  EXPECT_EQ((co_await weft::as_result(stream{}.write_some(data))).error(), weft::errc::closed);
  both = connected();
  both.there = stream{};
  EXPECT_EQ((co_await weft::as_result(both.here.write_some(data))).error(), weft::errc::closed);
}

TEST(stream_misuse, one_that_reads_into_parts_is_a_reader) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(weft::sync_wait([]() -> task<> {
                 const connection both = connected();
                 std::string buffer(4, '.');
                 const parts_to_fill parts = cut(buffer, {2, 2});
                 co_await weft::when_all(both.here.read(parts), both.here.receive());
               }()),
               "two tasks read from one stream at once");
}

// ---- writes ---------------------------------------------------------------------------------------------------------------

WEFT_TEST("stream: reads and writes at the same time") {
  const connection both = connected();
  std::string large(1 << 21, '\0');
  for (std::size_t i = 0; i != large.size(); ++i) large[i] = static_cast<char>(i * 31 >> 4);
  const auto write = [](const stream& to, std::string_view text) -> task<> {
    co_await to.write(text);
    to.shutdown();
  };
  const auto [a, b, there, back] = co_await weft::when_all(write(both.here, large), write(both.there, large),
                                                           read_all(both.there), read_all(both.here));
  EXPECT_TRUE(there == large);
  EXPECT_TRUE(back == large);
}

WEFT_TEST("stream: writes several parts in order") {
  const connection both = connected();
  std::vector<std::string> texts;
  std::string all;
  for (int i = 0; i != 300; ++i)
    all += texts.emplace_back(static_cast<std::size_t>(i * 7), static_cast<char>('a' + i % 26));
  std::vector<std::span<const std::byte>> parts;
  for (const std::string& text : texts) parts.push_back(bytes(text));
  const auto write = [](const stream& to, std::vector<std::span<const std::byte>> these) -> task<> {
    co_await to.write(these);
    to.shutdown();
  };
  const auto [none, got] = co_await weft::when_all(write(both.here, parts), read_all(both.there));
  EXPECT_TRUE(got == all);
}

WEFT_TEST("stream: a write that is stopped half-way closes the write side") {
  const connection both = connected();
  const std::string large(1 << 22, 'x');
  const auto body = [&](scope& inside) -> task<> {
    auto writing = inside.fork(weft::as_result(both.here.write(large)));
    while (!test::is_readable(both.there)) co_await weft::sleep_for(1ms);
    writing.request_stop();
    EXPECT_TRUE((co_await std::move(writing)).is_stopped());
  };
  co_await weft::with_scope(body);
  EXPECT_EQ((co_await weft::as_result(both.here.write("more"))).error(), weft::errc::closed);
  const std::string got = co_await read_all(both.there);  // to its end
  EXPECT_GT(got.size(), 0u);
  EXPECT_LT(got.size(), large.size());
  co_await both.there.write("the other way is open");
  EXPECT_EQ(co_await read_exactly(both.here, 21), "the other way is open");
}

WEFT_TEST("stream: a write that is stopped before its first byte has had no effect") {
  const connection both = connected();
  const std::string large(1 << 22, 'x');
  std::size_t before = 0;  // until there is no more room
  for (;;) {
    const auto some = co_await weft::as_result(weft::timeout(1ms, both.here.write_some(bytes(large))));
    if (some.error() && !test::is_writable(both.here)) break;
    if (!some.error()) before += *some;
  }
  EXPECT_EQ((co_await weft::as_result(weft::timeout(1ms, both.here.write("no room")))).error(), weft::errc::timed_out);
  EXPECT_EQ((co_await read_exactly(both.there, before)).size(), before);
  co_await both.here.write("room");
  EXPECT_EQ(co_await read_exactly(both.there, 4), "room");
}

WEFT_TEST("stream: a write to nobody fails, and raises no signal") {
  connection both = connected();
  both.there = stream{};
  EXPECT_EQ((co_await weft::as_result(both.here.write("nobody"))).error(), weft::errc::closed);
}

// ---- closing --------------------------------------------------------------------------------------------------------------

WEFT_TEST("stream: closing ends who waits, and its number is not used again meanwhile") {
  for (int i = 0; i != 50; ++i) {
    connection both = connected();
    std::array<std::byte, 4> buffer;
    const auto body = [&](scope& inside) -> task<> {
      auto read = inside.fork(weft::as_result(both.here.read(buffer)));
      co_await weft::sleep_for(100us);
      both.here.close();
      both.here.close();
      const connection others = connected();  // perhaps with the same numbers
      EXPECT_EQ((co_await std::move(read)).error(), weft::errc::closed);
      co_await others.there.write("fine");
      EXPECT_EQ(co_await read_exactly(others.here, 4), "fine");
    };
    co_await weft::with_scope(body);
    EXPECT_FALSE(both.here.is_open());
    EXPECT_EQ((co_await weft::as_result(both.here.read(buffer))).error(), weft::errc::closed);
    EXPECT_EQ((co_await weft::as_result(both.here.write("x"))).error(), weft::errc::closed);
    EXPECT_EQ(co_await both.there.read(buffer), 0u);  // the peer hears of it
  }
}

WEFT_TEST("stream: one that is none is closed") {
  const stream none;
  std::array<std::byte, 4> buffer;
  EXPECT_EQ((co_await weft::as_result(none.read(buffer))).error(), weft::errc::closed);
  EXPECT_EQ((co_await weft::as_result(none.write("x"))).error(), weft::errc::closed);
  EXPECT_EQ((co_await weft::as_result(none.write_some(bytes("x")))).error(), weft::errc::closed);
  EXPECT_THROW(none.shutdown(), weft::error);
  EXPECT_THROW(static_cast<void>(none.local()), weft::error);
  EXPECT_EQ(none.native_handle(), -1);
}

TEST(net, descriptors_are_used_again) {
  weft::runtime rt{{.threads = 2}};
  EXPECT_EQ(rt.run(ask_many(2, test::rounds(1000))), 2 * test::rounds(1000));
  EXPECT_EQ(rt.stats().watched, 0u);
}

WEFT_TEST("stream: is released with what it is, and taken over again") {
  connection both = connected();
  co_await both.there.write("before");
  const int number = both.here.release();
  EXPECT_GE(number, 0);
  EXPECT_FALSE(both.here.is_open());
  char text[7]{};
  EXPECT_EQ(::read(number, text, 6), 6);
  EXPECT_STREQ(text, "before");
  EXPECT_NE(::fcntl(number, F_GETFD) & FD_CLOEXEC, 0);
  both.here = stream::adopt(number);
  co_await both.there.write("after");
  EXPECT_EQ(co_await read_exactly(both.here, 5), "after");
}

WEFT_TEST("stream: one that others have, too, stays theirs when it is closed") {
  connection both = co_await connected_by_tcp();
  const int theirs = ::fcntl(both.here.native_handle(), F_DUPFD_CLOEXEC, 0);
  both.here = stream{};
  co_await both.there.write("still here");
  char text[16]{};
  while (::read(theirs, text, sizeof text) < 0) co_await weft::sleep_for(100us);
  EXPECT_STREQ(text, "still here");
  ::close(theirs);
  EXPECT_EQ(co_await read_all(both.there), "");
}

// As a child may, that has the file, too. On one thread: a call that blocks holds up what it waits for.
WEFT_TEST("stream: one that somebody else has made blocking blocks no thread") {
  connection both = connected();
  for (const stream* one : {&both.here, &both.there}) {
    const int flags = ::fcntl(one->native_handle(), F_GETFL);
    EXPECT_EQ(::fcntl(one->native_handle(), F_SETFL, flags & ~O_NONBLOCK), 0);
  }
  const std::string much(1'000'000, 'x');
  auto [got, sent] = co_await weft::when_all(read_exactly(both.here, much.size()), both.there.write(much));
  EXPECT_TRUE(got == much);
}

TEST(stream_misuse, a_number_that_is_none_is_refused) {
  EXPECT_THROW(static_cast<void>(stream::adopt(-1)), weft::error);
  const int file = ::open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  EXPECT_THROW(static_cast<void>(stream::adopt(file)), weft::error);  // epoll does not watch files
  EXPECT_EQ(::close(file), 0);                                        // it is the caller's still
}

// ---- listeners and connecting -------------------------------------------------------------------------------------------------

// By a poll that is still armed a ring would keep it open for as long as the object is there.
WEFT_TEST("stream: the peer hears of a close at once, also where others may have the socket, too") {
  connection both = test::connected();
  std::array<std::byte, 4> buffer;
  const auto late = co_await weft::as_result(weft::timeout(1ms, both.here.read(buffer)));
  EXPECT_EQ(late.error(), weft::errc::timed_out);
  both.here.close();
  EXPECT_EQ(co_await both.there.read(buffer), 0U);
}

WEFT_TEST("listener: the address is free as soon as it is closed, though somebody accepts") {
  listener first = co_await weft::net::listen(anywhere);
  const endpoint where = first.local();
  for (int i = 0; i != 20; ++i) {
    const auto body = [&](scope& inside) -> task<> {
      auto a = inside.fork(weft::as_result(first.accept()));
      auto b = inside.fork(weft::as_result(first.accept()));
      co_await weft::sleep_for(100us);
      first.close();
      listener second = co_await weft::net::listen(where);
      EXPECT_EQ((co_await std::move(a)).error(), weft::errc::closed);
      EXPECT_EQ((co_await std::move(b)).error(), weft::errc::closed);
      first = std::move(second);
    };
    co_await weft::with_scope(body);
  }
}

WEFT_TEST("listener: several tasks accept, and each connection is one's") {
  const listener at = co_await weft::net::listen(anywhere);
  std::vector<task<stream>> accepts;
  for (int i = 0; i != 8; ++i) accepts.push_back(at.accept());
  std::vector<task<stream>> connects;
  for (int i = 0; i != 8; ++i) connects.push_back(weft::net::connect(at.local()));
  auto [accepted, made] =
      co_await weft::when_all(weft::when_all(std::move(accepts)), weft::when_all(std::move(connects)));
  std::vector<endpoint> peers, own;
  for (const stream& one : accepted) peers.push_back(one.peer());
  for (const stream& one : made) own.push_back(one.local());
  std::ranges::sort(peers);
  std::ranges::sort(own);
  EXPECT_EQ(peers, own);
}

WEFT_TEST("listener: an accept that is stopped has had no effect") {
  const listener at = co_await weft::net::listen(anywhere);
  EXPECT_EQ((co_await weft::as_result(weft::timeout(1ms, at.accept()))).error(), weft::errc::timed_out);
  const stream to = co_await weft::net::connect(at.local());
  EXPECT_EQ((co_await at.accept()).peer(), to.local());
}

// On a Unix socket the system says "try again" then, and never again that one may.
WEFT_TEST("listener: an accept fails where somebody has shut the socket down") {
  const int number = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un name{};
  name.sun_family = AF_UNIX;  // one that the system chooses
  EXPECT_EQ(::bind(number, reinterpret_cast<const sockaddr*>(&name), sizeof(sa_family_t)), 0);
  EXPECT_EQ(::listen(number, 1), 0);
  const listener at = listener::adopt(number);
  const auto breaks = [number]() -> task<> {
    co_await weft::sleep_for(1ms);
    EXPECT_EQ(::shutdown(number, SHUT_RDWR), 0);
  };
  auto both = weft::when_all(at.accept(), breaks());
  const auto how = co_await weft::as_result(std::move(both));
  EXPECT_EQ(how.error(), std::errc::invalid_argument);
  const auto again = co_await weft::as_result(at.accept());
  EXPECT_EQ(again.error(), std::errc::invalid_argument);
}

WEFT_TEST("listener: an address in use is refused by name") {
  const listener at = co_await weft::net::listen(anywhere);
  const auto again = co_await weft::as_result(weft::net::listen(at.local()));
  EXPECT_EQ(again.error(), std::errc::address_in_use);
  try {
    static_cast<void>(again.value());
  } catch (const weft::error& failure) {
    EXPECT_NE(std::string{failure.what()}.find(at.local().to_string()), std::string::npos) << failure.what();
  }
}

WEFT_TEST("listener: IPv6") {
  const auto at = co_await weft::as_result(weft::net::listen(endpoint{"::1", 0}));
  if (!at) {
    std::printf("no IPv6 here\n");
    co_return;
  }
  const stream to = co_await weft::net::connect(at->local());
  EXPECT_EQ(to.peer(), at->local());
}

WEFT_TEST("connect: is refused where nobody listens") {
  endpoint where;
  {
    const listener gone = co_await weft::net::listen(anywhere);
    where = gone.local();
  }
  const auto none = co_await weft::as_result(weft::net::connect(where));
  EXPECT_EQ(none.error(), std::errc::connection_refused);
}

WEFT_TEST("connect: one that gets no answer can be stopped") {
  const listener full = co_await weft::net::listen({.backlog = 0}, anywhere);
  std::vector<stream> waiting;
  std::error_code last;
  for (int i = 0; i != 8 && !last; ++i) {
    auto one = co_await weft::as_result(weft::timeout(20ms, weft::net::connect(full.local())));
    last = one.error();
    if (one) waiting.push_back(std::move(one).value());
  }
  EXPECT_EQ(last, weft::errc::timed_out);
}

// ---- descriptors of others ----------------------------------------------------------------------------------------------------

WEFT_TEST("ready: of a pipe of somebody else") {
  int ends[2];
  EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  EXPECT_EQ(co_await weft::net::ready(ends[1], weft::net::readiness::writable), weft::net::readiness::writable);
  EXPECT_EQ(
      (co_await weft::as_result(weft::timeout(1ms, weft::net::ready(ends[0], weft::net::readiness::readable)))).error(),
      weft::errc::timed_out);
  const auto body = [&](scope& inside) -> task<> {
    auto read = inside.fork(weft::net::ready(ends[0], weft::net::readiness::readable));
    auto either = inside.fork(weft::net::ready(ends[0], weft::net::readiness::either));
    co_await weft::yield();
    EXPECT_EQ(::write(ends[1], "x", 1), 1);
    EXPECT_EQ(co_await std::move(read), weft::net::readiness::readable);
    EXPECT_EQ(co_await std::move(either), weft::net::readiness::readable);
  };
  co_await weft::with_scope(body);
  ::close(ends[1]);
  EXPECT_EQ(co_await weft::net::ready(ends[0], weft::net::readiness::either), weft::net::readiness::either);  // its end
  ::close(ends[0]);
  EXPECT_EQ((co_await weft::as_result(weft::net::ready(ends[0], weft::net::readiness::readable))).error(),
            std::errc::bad_file_descriptor);
}

// ---- fairness -------------------------------------------------------------------------------------------------------------

TEST(net, operations_that_are_ready_let_others_run) {
  weft::runtime rt{{.threads = 1}};
  const auto body = [](scope& inside) -> task<> {
    const connection both = connected();
    co_await both.there.write(std::string(1000, 'x'));
    int read_before = -1, read = 0;
    inside.fork([](int& before, const int& so_far) -> task<> {
      co_await weft::yield();
      before = so_far;
    }(read_before, read));
    std::array<std::byte, 1> one;
    for (; read != 1000; ++read) co_await both.here.read(one);
    EXPECT_GE(read_before, 0);
    EXPECT_LT(read_before, 1000);
  };
  rt.run(weft::with_scope(body));
}

// It waits in the frame of the task that awaits it.
WEFT_TEST("stream: a read has no frame of its own, whether it waits or not") {
  test::counting_resource memory;
  const connection both = connected();
  std::size_t before = 0, behind = 0;
  const auto reads = [&]() -> task<> {
    std::array<std::byte, 1> one;
    before = memory.allocations;
    EXPECT_EQ(co_await both.here.read(one), 1U);  // it waits
    EXPECT_EQ(co_await both.here.read(one), 1U);
    behind = memory.allocations;
  };
  const auto writes = [&]() -> task<> {
    co_await weft::sleep_for(5ms);
    co_await both.there.write(bytes("ab"));
  };
  co_await weft::when_all(weft::with_memory(&memory, reads), writes());
  EXPECT_GT(before, 0U);
  EXPECT_EQ(behind, before);
}

// The functions by whose names a snapshot shows it.
TEST(net, a_snapshot_shows_who_waits_in_a_read) {
  int both[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, both), 0);
  weft::runtime rt{{.threads = 1}};
  std::atomic<bool> is_waiting{false};
  struct waits {
    static task<> for_a_byte(stream from, std::atomic<bool>& begun) {
      begun = true;
      std::array<std::byte, 1> one;
      EXPECT_EQ(co_await from.read(one), 1U);
    }
  };
  std::jthread server{[&] { rt.run(waits::for_a_byte(stream::adopt(both[0]), is_waiting)); }};
  std::vector<std::string> stack;
  test::until([&] {
    if (!is_waiting) return false;
    for (const weft::task_info& one : weft::take_snapshot().tasks) {
      if (one.waits.empty() || std::string_view{one.waits[0].what} != "I/O") continue;
      for (const weft::async_frame& each : one.stack) stack.push_back(each.function());
    }
    return !stack.empty();
  });
  EXPECT_EQ(::write(both[1], "x", 1), 1);
  server.join();
  ::close(both[1]);
  ASSERT_GE(stack.size(), 2U);
  EXPECT_NE(stack[0].find("reading"), std::string::npos) << stack[0];
  EXPECT_NE(stack[1].find("for_a_byte"), std::string::npos) << stack[1];
}

TEST(net, sockets_are_reached_while_one_worker_computes) {
  weft::runtime rt{{.threads = 2}};
  const auto body = [](scope& inside) -> task<> {
    std::atomic<bool> computes{false}, done{false};
    auto computing = inside.fork([](std::atomic<bool>& now, const std::atomic<bool>& until) -> task<> {
      now = true;
      while (!until) std::this_thread::yield();
      co_return;
    }(computes, done));
    EXPECT_EQ(co_await ask_many(2, 5), 10);
    done = true;
    co_await std::move(computing);
  };
  rt.run(weft::with_scope(body));
}

// The worker that slept in the set is the one that computes, and the other one had nothing to look after when it fell asleep.
TEST(net, sockets_are_reached_while_the_worker_computes_that_waited_for_them) {
  int first[2], second[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, first), 0);
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, second), 0);
  weft::runtime rt{{.threads = 2}};
  std::atomic<bool> computes{false}, served{false};
  std::jthread peer{[&] {
    std::this_thread::sleep_for(20ms);  // all sleep by then, or the test says less
    EXPECT_EQ(::write(first[1], "x", 1), 1);
    while (!computes) std::this_thread::yield();
    EXPECT_EQ(::write(second[1], "x", 1), 1);
  }};
  const auto body = [&](scope& inside) -> task<> {
    inside.fork([](stream from, std::atomic<bool>& now, const std::atomic<bool>& until) -> task<> {
      EXPECT_EQ(co_await read_exactly(from, 1), "x");
      now = true;
      while (!until) std::this_thread::yield();
    }(stream::adopt(first[0]), computes, served));
    const stream other = stream::adopt(second[0]);
    EXPECT_EQ(co_await read_exactly(other, 1), "x");
    served = true;
  };
  rt.run(weft::with_scope(body));
  peer.join();
  ::close(first[1]);
  ::close(second[1]);
}

// The same where no socket has woken it, but a timer, or a job for it alone.
TEST(net, sockets_are_reached_while_a_worker_computes_that_was_woken_for_something_else) {
  for (const bool by_timer : {true, false}) {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    weft::runtime rt{{.threads = 2, .io = weft::io_backend::epoll}};
    std::atomic<int> computing{0};
    std::atomic<bool> served{false};
    const auto computes = [&]() -> task<> {
      if (by_timer) co_await weft::sleep_for(20ms);
      ++computing;
      const auto until = std::chrono::steady_clock::now() + 5s;
      while (!served && std::chrono::steady_clock::now() < until) std::this_thread::yield();
      EXPECT_TRUE(served) << (by_timer ? "by a timer" : "by a job");
    };
    std::jthread peer{[&] {
      std::this_thread::sleep_for(20ms);  // all sleep by then, or the test says less
      while (computing == 0) std::this_thread::yield();
      EXPECT_EQ(::write(ends[1], "x", 1), 1);
    }};
    const auto reads = [&]() -> task<> {
      const stream from = stream::adopt(ends[0]);
      EXPECT_EQ(co_await read_exactly(from, 1), "x");
      served = true;
    };
    const auto body = [&](scope& inside) -> task<> {
      inside.fork(weft::start_on(rt.workers().worker(0), reads()));
      if (by_timer) inside.fork(weft::start_on(rt.workers().worker(1), computes()));
      co_return;
    };
    std::jthread poster{[&] {
      std::this_thread::sleep_for(10ms);
      if (!by_timer) weft::sync_wait(weft::start_on(rt.workers().worker(1), computes()));
    }};
    rt.run(weft::with_scope(body));
    poster.join();
    ::close(ends[1]);
  }
}

}  // namespace

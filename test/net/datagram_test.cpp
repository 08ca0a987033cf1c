// Datagrams on real sockets of this machine, in a runtime and outside of one. See weft/datagram.hpp. As net_test.cpp, with
// WEFT_TEST_IN_RUNTIME=epoll or =uring all bodies run in a runtime on that.
#include "support/weft_test.hpp"

#include <fcntl.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <new>
#include <string>
#include <string_view>
#include <vector>
#include <weft/combine.hpp>
#include <weft/datagram.hpp>
#include <weft/fiber.hpp>
#include <weft/runtime.hpp>
#include <weft/scope.hpp>
#include <weft/select.hpp>

#include "net/sockets.hpp"

namespace {

using namespace std::chrono_literals;
using test::anywhere;
using test::bytes;
using weft::after;
using weft::as_result;
using weft::on;
using weft::scope;
using weft::select;
using weft::task;
using weft::timeout;
using weft::net::bind;
using weft::net::datagram;
using weft::net::endpoint;
using weft::net::incoming_buffers;
using weft::net::outgoing;
using weft::net::received;
using weft::net::received_from;

std::string_view text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Two sockets by UDP, each the other's peer.
struct pair {
  datagram here, there;
};
task<pair> connected() {
  datagram here = co_await bind(anywhere);
  datagram there = co_await bind(anywhere);
  here.connect(there.local());
  there.connect(here.local());
  co_return pair{std::move(here), std::move(there)};
}

task<std::string> receive_text(const datagram& from) {
  std::array<std::byte, 2048> buffer;
  const received got = co_await from.receive(buffer);
  EXPECT_FALSE(got.is_truncated());
  co_return std::string{text(std::span{buffer}.first(got.size))};
}

task<endpoint> nobody() {
  const datagram gone = co_await bind(anywhere);
  co_return gone.local();
}

// ---- one by one -------------------------------------------------------------------------------------------------------------

WEFT_TEST("datagram: is sent to whomever, who is told by whom") {
  const datagram here = co_await bind(anywhere);
  const datagram there = co_await bind(anywhere);
  co_await here.send_to("hello", there.local());
  std::array<std::byte, 64> buffer;
  const received_from got = co_await there.receive_from(buffer);
  EXPECT_EQ(text(std::span{buffer}.first(got.size)), "hello");
  EXPECT_EQ(got.from, here.local());
  EXPECT_EQ(got.full_size, 5u);
  EXPECT_EQ(got.segment, 0u);
  co_await there.send_to("you too", got.from);
  EXPECT_EQ(co_await receive_text(here), "you too");
}

WEFT_TEST("datagram: by IPv6") {
  const auto made = co_await as_result(bind({.only_v6 = true}, endpoint{"::1", 0}));
  if (!made) {
    std::printf("no IPv6 here\n");
    co_return;
  }
  const datagram there = co_await weft::net::connect_datagram(made->local());
  co_await there.send("six");
  std::array<std::byte, 64> buffer;
  const received_from got = co_await made->receive_from(buffer);
  EXPECT_EQ(got.from, there.local());
  EXPECT_TRUE(got.from.is_v6());
  EXPECT_EQ(text(std::span{buffer}.first(got.size)), "six");
}

WEFT_TEST("datagram: waits until one comes, an empty one, too") {
  const pair both = co_await connected();
  const auto sends = [&]() -> task<> {
    for (const std::string_view one : {"a", "", "bc"}) {
      co_await weft::sleep_for(1ms);
      co_await both.there.send(one);
    }
  };
  const auto receives = [&]() -> task<std::string> {
    std::string all;
    for (int i = 0; i != 3; ++i) all += '<' + co_await receive_text(both.here) + '>';
    co_return all;
  };
  const auto [all, none] = co_await weft::when_all(receives(), sends());
  EXPECT_EQ(all, "<a><><bc>");
}

WEFT_TEST("datagram: that is too long for the buffer is told of, and its rest is lost") {
  const pair both = co_await connected();
  co_await both.there.send("a long one");
  co_await both.there.send("next");
  std::array<std::byte, 4> buffer;
  const received got = co_await both.here.receive(buffer);
  EXPECT_EQ(got.size, 4u);
  EXPECT_EQ(got.full_size, 10u);
  EXPECT_TRUE(got.is_truncated());
  EXPECT_EQ(text(buffer), "a lo");
  const received none = co_await both.here.receive({});
  EXPECT_EQ(none.size, 0u);
  EXPECT_EQ(none.full_size, 4u);
}

WEFT_TEST("datagram: a receive that is stopped has had no effect") {
  const pair both = co_await connected();
  for (int i = 0; i != 20; ++i) {
    auto poisoned = std::make_unique<std::array<std::byte, 64>>();
    const auto stopped = co_await as_result(timeout(1ms, both.here.receive(*poisoned)));
    EXPECT_EQ(stopped.error(), weft::errc::timed_out);
    poisoned.reset();
    co_await both.there.send("kept");
    EXPECT_EQ(co_await receive_text(both.here), "kept");
  }
}

WEFT_TEST("datagram: too long to be one is refused, and the socket goes on") {
  const pair both = co_await connected();
  const std::string large(70'000, 'x');
  EXPECT_EQ((co_await as_result(both.there.send(large))).error(), std::errc::message_size);
  co_await both.there.send("short");
  EXPECT_EQ(co_await receive_text(both.here), "short");
}

WEFT_TEST("datagram: without a peer is refused") {
  const datagram alone = co_await bind(anywhere);
  EXPECT_EQ((co_await as_result(alone.send("x"))).error(), std::errc::destination_address_required);
  EXPECT_THROW(static_cast<void>(alone.peer()), weft::error);
}

// What the peer's system says of it comes with the next operation, and once.
WEFT_TEST("datagram: to a peer that is not there fails the next operation") {
  const endpoint where = co_await nobody();
  const datagram to = co_await weft::net::connect_datagram(where);
  co_await to.send("x");
  EXPECT_EQ((co_await as_result(timeout(60s, receive_text(to)))).error(), std::errc::connection_refused);
  EXPECT_EQ((co_await as_result(timeout(5ms, receive_text(to)))).error(), weft::errc::timed_out);
  co_await to.send("x");
  auto second = co_await as_result(to.send("y"));
  EXPECT_EQ(second.error(), std::errc::connection_refused);
}

WEFT_TEST("datagram: an error behind some that have come is told of by the next receive") {
  datagram to = co_await bind(anywhere);
  incoming_buffers buffers{4, 16};
  {
    datagram peer = co_await bind(anywhere);
    to.connect(peer.local());
    peer.connect(to.local());
    co_await peer.send("one");
    co_await peer.send("two");
    EXPECT_EQ(co_await to.receive_batch(buffers), 2u);
    co_await peer.send("three");
  }
  co_await to.send("x");  // nobody is there: the error may be found before, or behind, what has come
  int came = 0, failed = 0;
  while (came + failed != 2) {
    const auto got = co_await as_result(timeout(60s, to.receive_batch(buffers)));
    if (got.has_value()) {
      came += static_cast<int>(*got);
    } else {
      EXPECT_EQ(got.error(), std::errc::connection_refused);
      ++failed;
    }
  }
  EXPECT_EQ(came, 1);
  EXPECT_EQ(failed, 1);
}

WEFT_TEST("datagram: has another peer, and none") {
  const datagram one = co_await bind(anywhere);
  const datagram two = co_await bind(anywhere);
  const datagram from = co_await bind(anywhere);
  from.connect(one.local());
  EXPECT_EQ(from.peer(), one.local());
  co_await from.send("first");
  from.connect(two.local());
  co_await from.send("second");
  EXPECT_EQ(co_await receive_text(one), "first");
  EXPECT_EQ(co_await receive_text(two), "second");
  from.disconnect();
  EXPECT_EQ((co_await as_result(from.send("x"))).error(), std::errc::destination_address_required);
}

WEFT_TEST("datagram: closing ends who waits") {
  datagram here = co_await bind(anywhere);
  incoming_buffers buffers{2, 16};
  std::array<std::byte, 4> a, b;
  const auto body = [&](scope& inside) -> task<> {
    auto first = inside.fork(as_result(here.receive(a)));
    auto second = inside.fork(as_result(here.receive_from(b)));
    auto third = inside.fork(as_result(here.receive_batch(buffers)));
    co_await weft::sleep_for(100us);
    here.close();
    here.close();
    EXPECT_EQ((co_await std::move(first)).error(), weft::errc::closed);
    EXPECT_EQ((co_await std::move(second)).error(), weft::errc::closed);
    EXPECT_EQ((co_await std::move(third)).error(), weft::errc::closed);
  };
  co_await weft::with_scope(body);
  EXPECT_FALSE(here.is_open());
  EXPECT_EQ((co_await as_result(here.receive(a))).error(), weft::errc::closed);
  EXPECT_EQ((co_await as_result(here.send_to("x", anywhere))).error(), weft::errc::closed);
}

WEFT_TEST("datagram: one that is none is closed") {
  const datagram none;
  std::array<std::byte, 4> buffer;
  incoming_buffers buffers{1, 4};
  EXPECT_EQ((co_await as_result(none.receive(buffer))).error(), weft::errc::closed);
  EXPECT_EQ((co_await as_result(none.receive_from(buffer))).error(), weft::errc::closed);
  EXPECT_EQ((co_await as_result(none.receive_batch(buffers))).error(), weft::errc::closed);
  EXPECT_EQ((co_await as_result(none.send("x"))).error(), weft::errc::closed);
  EXPECT_EQ((co_await as_result(none.send_to("x", endpoint::unix_path("/x")))).error(), weft::errc::closed);
  EXPECT_EQ((co_await as_result(none.send_segments(bytes("x"), 1))).error(), weft::errc::closed);
  EXPECT_THROW(none.connect(anywhere), weft::error);
  EXPECT_THROW(none.disconnect(), weft::error);
  EXPECT_THROW(static_cast<void>(none.local()), weft::error);
  EXPECT_EQ(none.native_handle(), -1);
}

WEFT_TEST("datagram: options of one that is none, or closed, are refused as that") {
  const auto is_closed = [](auto set) {
    try {
      set();
    } catch (const weft::error& refused) {
      return refused.code() == weft::errc::closed;
    }
    return false;
  };
  datagram closed = co_await bind(anywhere);
  closed.close();
  const datagram none;
  for (const datagram* const one : {&none, static_cast<const datagram*>(&closed)}) {
    EXPECT_TRUE(is_closed([&] { one->set_receive_buffer(8192); }));
    EXPECT_TRUE(is_closed([&] { one->set_send_buffer(8192); }));
    EXPECT_TRUE(is_closed([&] { one->set_broadcast(true); }));
    EXPECT_TRUE(is_closed([&] { one->set_time_to_live(1); }));
    EXPECT_TRUE(is_closed([&] { one->set_type_of_service(0); }));
    EXPECT_TRUE(is_closed([&] { one->set_merges_received(true); }));
    EXPECT_TRUE(is_closed([&] { one->join(endpoint{"239.1.1.1", 0}); }));
    EXPECT_TRUE(is_closed([&] { one->leave(endpoint{"239.1.1.1", 0}); }));
    EXPECT_TRUE(is_closed([&] { one->set_multicast_interface("1"); }));
    EXPECT_TRUE(is_closed([&] { one->set_multicast_loopback(true); }));
    EXPECT_TRUE(is_closed([&] { one->set_multicast_time_to_live(1); }));
  }
}

// Somebody else's shutdown() is reported for ever: a receive must not try for ever.
WEFT_TEST("datagram: a receive ends where somebody has shut the socket down") {
  const pair both = co_await connected();
  const auto breaks = [&]() -> task<> {
    co_await weft::sleep_for(1ms);
    EXPECT_EQ(::shutdown(both.here.native_handle(), SHUT_RD), 0);
  };
  auto waits = weft::when_all(receive_text(both.here), breaks());
  EXPECT_EQ((co_await as_result(std::move(waits))).error(), weft::errc::closed);
}

WEFT_TEST("datagram: is released, and taken over again") {
  pair both = co_await connected();
  const int number = both.here.release();
  EXPECT_GE(number, 0);
  EXPECT_FALSE(both.here.is_open());
  both.here = datagram::adopt(number);
  EXPECT_NE(::fcntl(number, F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_NE(::fcntl(number, F_GETFL) & O_NONBLOCK, 0);
  co_await both.there.send("again");
  EXPECT_EQ(co_await receive_text(both.here), "again");
}

TEST(datagram_misuse, what_is_no_datagram_socket_is_refused) {
  EXPECT_THROW(static_cast<void>(datagram::adopt(-1)), weft::error);
  const int number = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  try {
    static_cast<void>(datagram::adopt(number));
    ADD_FAILURE();
  } catch (const weft::error& refused) {
    EXPECT_EQ(refused.code(), std::errc::wrong_protocol_type);
  }
  EXPECT_EQ(::close(number), 0);  // it is the caller's still
}

// Such a one has senders that are no endpoint.
TEST(datagram_misuse, of_another_family_is_refused) {
  const int number = ::socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_ROUTE);
  ASSERT_GE(number, 0);
  try {
    static_cast<void>(datagram::adopt(number));
    ADD_FAILURE();
  } catch (const weft::error& refused) {
    EXPECT_EQ(refused.code(), std::errc::address_family_not_supported);
  }
  EXPECT_EQ(::close(number), 0);  // it is the caller's still
}

TEST(datagram_misuse, buffers_of_more_than_there_is_are_refused) {
  constexpr std::size_t half = std::size_t{1} << 63;
  EXPECT_THROW((incoming_buffers{2, half}), std::bad_alloc);
  EXPECT_THROW((incoming_buffers{half, 2}), std::bad_alloc);
}

TEST(datagram_misuse, segments_of_no_bytes_end_the_program) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(static_cast<void>(datagram{}.send_segments(bytes("x"), 0)), "datagrams of no bytes each");
  EXPECT_DEATH((incoming_buffers{0, 1}), "buffers for no datagrams");
}

WEFT_TEST("datagram: an address in use is refused by name") {
  const datagram at = co_await bind(anywhere);
  const auto again = co_await as_result(bind(at.local()));
  EXPECT_EQ(again.error(), std::errc::address_in_use);
  const datagram a = co_await bind({.reuse_port = true}, anywhere);
  const datagram b = co_await bind({.reuse_port = true}, a.local());
  EXPECT_EQ(a.local(), b.local());
}

// ---- from wherever ----------------------------------------------------------------------------------------------------------

TEST(datagram, in_fibers_and_on_threads) {
  weft::runtime rt{{.threads = 2}};
  const auto body = [](scope& inside) -> task<std::string> {
    const datagram at = co_await bind(anywhere);
    inside.go([&at] {
      std::array<std::byte, 64> buffer;
      const received_from got = weft::await(at.receive_from(buffer));
      weft::await(at.send_to(std::span<const std::byte>{buffer}.first(got.size), got.from));
    });
    co_return co_await inside.go([&at] {
      const datagram to = weft::await(weft::net::connect_datagram(at.local()));
      weft::await(to.send("from a fiber"));
      std::array<std::byte, 64> buffer;
      const received got = weft::await(to.receive(buffer));
      return std::string{text(std::span<const std::byte>{buffer}.first(got.size))};
    });
  };
  EXPECT_EQ(rt.run(weft::with_scope(body)), "from a fiber");

  const datagram at = weft::sync_wait(bind(anywhere));
  weft::sync_wait(at.send_to("from a thread", at.local()));
  EXPECT_EQ(weft::sync_wait(receive_text(at)), "from a thread");
}

WEFT_TEST("datagram: several tasks receive, and each is one's") {
  const pair both = co_await connected();
  constexpr int count = 200;
  std::vector<std::atomic<int>> seen(count);
  std::atomic<int> total = 0;
  weft::event all;
  const auto receives = [&]() -> task<> {
    for (;;) {
      const std::string one = co_await receive_text(both.here);
      ++seen[static_cast<std::size_t>(std::stoi(one))];
      if (++total == count) all.set();
    }
  };
  const auto body = [&](scope& inside) -> task<> {
    for (int i = 0; i != 4; ++i) inside.fork(receives());
    for (int i = 0; i != count; ++i) {
      co_await both.there.send(std::to_string(i));
      while (total + 32 < i) co_await weft::yield();  // none is lost for want of room
    }
    co_await all.wait();
    inside.request_stop();
  };
  static_cast<void>(co_await as_result(weft::with_scope(body)));
  for (const auto& one : seen) EXPECT_EQ(one, 1);
}

// ---- as cases -----------------------------------------------------------------------------------------------------------------

WEFT_TEST("datagram: receives and sends are cases of a select") {
  const pair both = co_await connected();
  const datagram other = co_await bind(anywhere);
  std::array<std::byte, 16> a, b;
  EXPECT_EQ((co_await select(on(both.here.receive(a)), on(other.receive_from(b)), after(1ms))).index, 2u);
  co_await both.there.send_to("x", other.local());
  auto got = co_await select(on(both.here.receive(a)), on(other.receive_from(b)));
  EXPECT_EQ(got.index, 1u);
  EXPECT_EQ(std::get<1>(got.value).from, both.there.local());
  EXPECT_EQ((co_await select(on(both.here.receive(a)), on(both.here.send("y")))).index, 1u);
  EXPECT_EQ(co_await receive_text(both.there), "y");
  incoming_buffers buffers{2, 16};
  co_await both.there.send("z");
  EXPECT_EQ((co_await select(on(both.here.receive_batch(buffers)), after(60s))).index, 0u);
  EXPECT_EQ(text(buffers[0].bytes()), "z");
}

// ---- several at once ----------------------------------------------------------------------------------------------------------

WEFT_TEST("datagrams: a thousand by batches, in order") {
  const pair both = co_await connected();
  constexpr std::size_t count = 1000;
  std::vector<std::string> texts;
  std::vector<outgoing> all;
  for (std::size_t i = 0; i != count; ++i) texts.push_back(std::string(i % 7, '.') + std::to_string(i));
  for (const std::string& one : texts) all.push_back({.data = bytes(one)});
  std::vector<std::string> got;
  std::size_t calls = 0;
  std::atomic<std::size_t> came{0};
  const auto sends = [&]() -> task<> {
    for (std::span<const outgoing> left = all; !left.empty();) {
      const std::size_t sent = co_await both.there.send_batch(left);
      EXPECT_GT(sent, 0u);
      left = left.subspan(sent);
      while (count - left.size() > came + 64) co_await weft::yield();  // none is lost for want of room
    }
  };
  const auto receives = [&]() -> task<> {
    incoming_buffers buffers{64, 32};
    while (got.size() != count) {
      const std::size_t some = co_await both.here.receive_batch(buffers);
      for (std::size_t i = 0; i != some; ++i) {
        got.emplace_back(text(buffers[i].bytes()));
        EXPECT_EQ(buffers[i].from, both.there.local());
        EXPECT_FALSE(buffers[i].is_truncated());
      }
      came = got.size();
      ++calls;
    }
  };
  co_await weft::when_all(sends(), receives());
  EXPECT_EQ(got, texts);
  EXPECT_LT(calls, count);
}

WEFT_TEST("datagrams: a batch goes to several, and one of none is none") {
  const datagram from = co_await bind(anywhere);
  const datagram one = co_await bind(anywhere);
  const datagram two = co_await bind(anywhere);
  const std::array<outgoing, 3> those{{{.data = bytes("a"), .to = one.local()},
                                       {.data = bytes("b"), .to = two.local()},
                                       {.data = {}, .to = one.local()}}};
  EXPECT_EQ(co_await from.send_batch(those), 3u);
  EXPECT_EQ(co_await receive_text(one), "a");
  EXPECT_EQ(co_await receive_text(two), "b");
  EXPECT_EQ(co_await receive_text(one), "");
  EXPECT_EQ(co_await from.send_batch({}), 0u);
  EXPECT_EQ(co_await from.receive_batch({}), 0u);
}

WEFT_TEST("datagrams: a batch ends before one that can't be sent, which is refused next") {
  const pair both = co_await connected();
  const std::string large(70'000, 'x');
  const std::array<outgoing, 3> those{{{.data = bytes("a")}, {.data = bytes(large)}, {.data = bytes("b")}}};
  const std::span<const outgoing> all{those};
  EXPECT_EQ(co_await both.there.send_batch(all), 1u);
  EXPECT_EQ((co_await as_result(both.there.send_batch(all.subspan(1)))).error(), std::errc::message_size);
  EXPECT_EQ(co_await both.there.send_batch(all.subspan(2)), 1u);
  EXPECT_EQ(co_await receive_text(both.here), "a");
  EXPECT_EQ(co_await receive_text(both.here), "b");
}

WEFT_TEST("datagrams: truncated ones of a batch are told of, each") {
  const pair both = co_await connected();
  const std::array<outgoing, 3> those{{{.data = bytes("ab")}, {.data = bytes("abcdef")}, {.data = bytes("abcd")}}};
  EXPECT_EQ(co_await both.there.send_batch(those), 3u);
  incoming_buffers buffers{3, 4};
  std::size_t got = 0;
  while (got != 3) got += co_await both.here.receive_batch(std::span<weft::net::incoming>{buffers}.subspan(got));
  EXPECT_FALSE(buffers[0].is_truncated());
  EXPECT_TRUE(buffers[1].is_truncated());
  EXPECT_EQ(buffers[1].full_size, 6u);
  EXPECT_EQ(text(buffers[1].bytes()), "abcd");
  EXPECT_FALSE(buffers[2].is_truncated());
}

// ---- cut and merged -----------------------------------------------------------------------------------------------------------

task<std::size_t> send_all_segments(const datagram& by, std::string_view data, std::size_t segment) {
  std::size_t calls = 0;
  for (std::span<const std::byte> left = bytes(data); !left.empty(); ++calls) {
    const std::size_t sent = co_await by.send_segments(left, segment);
    EXPECT_GT(sent, 0u);
    EXPECT_TRUE(sent % segment == 0 || sent == left.size());
    left = left.subspan(sent);
  }
  co_return calls;
}

std::string many(std::size_t size) {
  std::string data(size, '\0');
  for (std::size_t i = 0; i != size; ++i) data[i] = static_cast<char>('a' + i * 7 % 26);
  return data;
}

WEFT_TEST("datagrams: are cut into segments, each of which comes by itself") {
  const pair both = co_await connected();
  both.here.set_receive_buffer(1 << 20);
  const std::string data = many(10'050);
  const std::size_t calls = co_await send_all_segments(both.there, data, 100);
  EXPECT_LE(calls, 7u);  // of 101
  std::string got;
  for (int i = 0; i != 101; ++i) {
    const std::string one = co_await receive_text(both.here);
    EXPECT_EQ(one.size(), i == 100 ? 50u : 100u);
    got += one;
  }
  EXPECT_EQ(got, data);
}

// Too long for the interface: so the system does not cut it, and each is sent by itself.
WEFT_TEST("datagrams: segments that the system does not cut are sent one by one") {
  const pair both = co_await connected();
  both.here.set_receive_buffer(1 << 20);
  const std::string data = many(70'000);
  EXPECT_GE(co_await send_all_segments(both.there, data, 32'500), 1u);
  std::vector<std::byte> buffer(65'536);
  std::string got;
  while (got.size() != data.size()) {
    const received one = co_await both.here.receive(buffer);
    EXPECT_FALSE(one.is_truncated());
    got += text(std::span{buffer}.first(one.size));
  }
  EXPECT_TRUE(got == data);
}

WEFT_TEST("datagrams: cut by the sender's system, and merged by the receiver's") {
  const datagram here = co_await bind(anywhere);
  const datagram there = co_await bind(anywhere);
  here.set_receive_buffer(1 << 20);
  const bool merges = here.set_merges_received(true);
  const std::string data = many(6'450);
  for (std::span<const std::byte> left = bytes(data); !left.empty();)
    left = left.subspan(co_await there.send_segments_to(left, 100, here.local()));
  std::vector<std::byte> buffer(65'536);
  std::string got;
  std::size_t receives = 0, segments = 0;
  while (got.size() != data.size()) {
    const received_from one = co_await here.receive_from(buffer);
    EXPECT_EQ(one.from, there.local());
    EXPECT_FALSE(one.is_truncated());
    EXPECT_TRUE(one.segment == 0 ? one.size <= 100 : one.segment == 100 && one.size > 100);
    got += text(std::span{buffer}.first(one.size));
    segments += one.segment == 0 ? 1 : (one.size + 99) / 100;
    ++receives;
  }
  EXPECT_EQ(got, data);
  EXPECT_EQ(segments, 65u);
  EXPECT_TRUE(!merges || receives < segments);
  EXPECT_TRUE(!merges || here.set_merges_received(false));
}

WEFT_TEST("datagrams: of one segment, and of nothing") {
  const pair both = co_await connected();
  EXPECT_EQ(co_await both.there.send_segments(bytes("one"), 100), 3u);
  EXPECT_EQ(co_await receive_text(both.here), "one");
  EXPECT_EQ(co_await both.there.send_segments({}, 100), 0u);
}

// ---- groups ---------------------------------------------------------------------------------------------------------------------

WEFT_TEST("datagram: comes to who has joined the group, and no more when it has left") {
  const endpoint group{"239.255.17.4", 0};
  const datagram member = co_await bind({.reuse_address = true}, endpoint{"0.0.0.0", 0});
  const datagram from = co_await bind(anywhere);
  member.join(group, "lo");
  from.set_multicast_interface("lo");
  from.set_multicast_loopback(true);
  from.set_multicast_time_to_live(0);
  const endpoint to{group.address(), member.local().port()};
  co_await from.send_to("to all", to);
  EXPECT_EQ(co_await receive_text(member), "to all");
  member.leave(group, "1");  // the loopback's number
  co_await from.send_to("to all", to);
  std::array<std::byte, 16> buffer;
  EXPECT_EQ((co_await as_result(timeout(5ms, member.receive(buffer)))).error(), weft::errc::timed_out);
  EXPECT_THROW(member.leave(group, "lo"), weft::error);
  EXPECT_THROW(member.join(anywhere), weft::error);
  EXPECT_THROW(member.join(group, "no-such-device"), weft::error);
  EXPECT_THROW(member.join(endpoint::unix_path("/x")), weft::error);
}

WEFT_TEST("datagram: groups of IPv6") {
  const auto made = co_await as_result(bind({.only_v6 = true}, endpoint{"::", 0}));
  const endpoint group{"ff01::17", 0};  // of one interface
  if (!made) {
    std::printf("no IPv6 here\n");
    co_return;
  }
  made->join(group, "lo");
  made->set_multicast_interface("lo");
  made->set_multicast_loopback(true);
  made->set_multicast_time_to_live(1);
  const endpoint to{"ff01::17%1", made->local().port()};
  const auto sent = co_await as_result(made->send_to("six", to));
  if (sent.error()) {
    EXPECT_EQ(sent.error(), std::errc::network_unreachable);  // no route for groups here
  } else {
    EXPECT_EQ(co_await receive_text(*made), "six");
  }
  made->leave(group, "lo");
}

WEFT_TEST("datagram: options are the socket's") {
  const datagram at = co_await bind(anywhere);
  const auto value = [&](int level, int option) {
    int found = -1;
    socklen_t size = sizeof found;
    EXPECT_EQ(::getsockopt(at.native_handle(), level, option, &found, &size), 0);
    return found;
  };
  at.set_broadcast(true);
  EXPECT_EQ(value(SOL_SOCKET, SO_BROADCAST), 1);
  at.set_time_to_live(7);
  EXPECT_EQ(value(IPPROTO_IP, IP_TTL), 7);
  at.set_type_of_service(0x2e << 2 | 1);
  EXPECT_EQ(value(IPPROTO_IP, IP_TOS), 0x2e << 2 | 1);
  at.set_multicast_loopback(false);
  EXPECT_EQ(value(IPPROTO_IP, IP_MULTICAST_LOOP), 0);
  at.set_multicast_loopback(true);
  EXPECT_EQ(value(IPPROTO_IP, IP_MULTICAST_LOOP), 1);
  at.set_multicast_time_to_live(3);
  EXPECT_EQ(value(IPPROTO_IP, IP_MULTICAST_TTL), 3);
  at.set_receive_buffer(8192);
  EXPECT_EQ(value(SOL_SOCKET, SO_RCVBUF), 2 * 8192);
  at.set_send_buffer(8192);
  EXPECT_EQ(value(SOL_SOCKET, SO_SNDBUF), 2 * 8192);
  EXPECT_THROW(at.set_time_to_live(1000), weft::error);
}

WEFT_TEST("datagram: options of a socket for IPv6 and IPv4 hold for both") {
  const auto made = co_await as_result(bind({}, endpoint{"::", 0}));
  if (!made) {
    std::printf("no IPv6 here\n");
    co_return;
  }
  const auto has_both = [&](int of_v4, int of_v6, int value) {
    int found[2] = {-1, -1};
    socklen_t size = sizeof(int);
    EXPECT_EQ(::getsockopt(made->native_handle(), IPPROTO_IP, of_v4, &found[0], &size), 0);
    size = sizeof(int);
    EXPECT_EQ(::getsockopt(made->native_handle(), IPPROTO_IPV6, of_v6, &found[1], &size), 0);
    return found[0] == value && found[1] == value;
  };
  made->set_time_to_live(7);
  EXPECT_TRUE(has_both(IP_TTL, IPV6_UNICAST_HOPS, 7));
  made->set_type_of_service(8);
  EXPECT_TRUE(has_both(IP_TOS, IPV6_TCLASS, 8));
  made->set_multicast_loopback(false);
  EXPECT_TRUE(has_both(IP_MULTICAST_LOOP, IPV6_MULTICAST_LOOP, 0));
  made->set_multicast_time_to_live(3);
  EXPECT_TRUE(has_both(IP_MULTICAST_TTL, IPV6_MULTICAST_HOPS, 3));

  // IPv4's interface is told as an address, so by what it sends: without one there may be no route.
  const endpoint group{"239.77.1.4", made->local().port()};
  made->set_multicast_interface("lo");
  made->set_multicast_loopback(true);
  made->join(group, "lo");
  co_await made->send_to("four", endpoint{"::ffff:239.77.1.4", group.port()});
  auto comes = receive_text(*made);
  EXPECT_EQ(co_await timeout(60s, std::move(comes)), "four");
  EXPECT_THROW(made->set_time_to_live(1000), weft::error);
}

TEST(datagram, operations_that_are_ready_let_others_run) {
  weft::runtime rt{{.threads = 1}};
  const auto body = [](scope& inside) -> task<> {
    const pair both = co_await connected();
    int others = 0;
    const auto turns = [&]() -> task<> {
      for (;;) {
        ++others;
        co_await weft::yield();
      }
    };
    auto beside = inside.fork(turns());
    std::array<std::byte, 4> buffer;
    for (int i = 0; i != 1000; ++i) {
      co_await both.there.send("x");
      co_await both.here.receive(buffer);
    }
    EXPECT_GE(others, 2 * 1000 / 128 - 2);
    beside.request_stop();
    EXPECT_TRUE((co_await as_result(std::move(beside))).is_stopped());
  };
  rt.run(weft::with_scope(body));
}

}  // namespace

// Operations on sockets as cases of a select, and how they fail. See weft/net.hpp and select_on.hpp.
#include "support/weft_test.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>
#include <weft/channel.hpp>
#include <weft/combine.hpp>
#include <weft/event.hpp>
#include <weft/mutex.hpp>
#include <weft/net.hpp>
#include <weft/nothrow.hpp>
#include <weft/runtime.hpp>
#include <weft/scope.hpp>
#include <weft/select.hpp>

#include "net/sockets.hpp"

namespace {

using namespace std::chrono_literals;
using test::anywhere;
using test::bytes;
using test::connected;
using test::connected_by_tcp;
using test::connection;
using test::read_all;
using test::read_exactly;
using weft::after;
using weft::channel;
using weft::on;
using weft::on_receive;
using weft::scope;
using weft::select;
using weft::task;
using weft::net::listener;
using weft::net::readiness;
using weft::net::stream;

// ---- reads ----------------------------------------------------------------------------------------------------------------

WEFT_TEST("a read as a case: is chosen when data has come") {
  const connection both = connected();
  channel<int> other{1};
  std::array<std::byte, 8> buffer{};
  co_await both.there.write("there");
  const auto at_once = co_await select(on_receive(other), on(both.here.read(buffer)));
  EXPECT_EQ(at_once.index, 1u);
  EXPECT_EQ(std::get<1>(at_once.value), 5u);

  const auto body = [&](scope& inside) -> task<> {
    const auto waits = [&]() -> task<std::size_t> {
      const auto got = co_await select(on_receive(other), on(both.here.read(buffer)));
      EXPECT_EQ(got.index, 1u);
      co_return std::get<1>(got.value);
    };
    auto waiting = inside.fork(waits());
    for (int i = 0; i != 3; ++i) co_await weft::yield();
    co_await both.there.write("later");
    EXPECT_EQ(co_await std::move(waiting), 5u);
  };
  co_await weft::with_scope(body);
  EXPECT_EQ(std::string_view(reinterpret_cast<const char*>(buffer.data()), 5), "later");
}

WEFT_TEST("a read as a case: has had no effect where another one is chosen") {
  const connection both = connected();
  for (int i = 0; i != 50; ++i) {
    auto poisoned = std::make_unique<std::array<std::byte, 64>>();
    const auto late = co_await select(on(both.here.read(*poisoned)), after(1ms));
    EXPECT_EQ(late.index, 1u);
    poisoned.reset();
    co_await both.there.write("kept");
    EXPECT_EQ(co_await read_exactly(both.here, 4), "kept");
  }
}

// Whichever is chosen, each byte is read once.
TEST(net_select, loses_no_byte_between_a_read_and_a_channel) {
  weft::runtime rt{{.threads = 2}};
  const int rounds = test::rounds(2000);
  const auto body = [&](scope& inside) -> task<> {
    const connection both = connected();
    channel<int> ticks{0};
    const auto send = [&]() -> task<> {
      for (int i = 0; i != rounds; ++i) {
        const auto digit = static_cast<std::byte>(i);
        co_await both.there.write(std::span{&digit, 1});
        if (i % 3 == 0) co_await weft::yield();
      }
      both.there.shutdown();
    };
    const auto tick = [&]() -> task<> {
      for (int i = 0; i != rounds; ++i) co_await ticks.send(i);
      ticks.close();
    };
    inside.fork(send());
    inside.fork(tick());
    int bytes_read = 0, ticked = 0;
    bool open = true, ended = false;
    while (open || !ended) {
      std::array<std::byte, 3> buffer{};
      const auto got = co_await select(on_receive(ticks), on(both.here.read(buffer)));
      if (got.index == 0) {
        if (std::get<0>(got.value))
          EXPECT_EQ(*std::get<0>(got.value), ticked++);
        else
          open = false;
        continue;
      }
      const std::size_t size = std::get<1>(got.value);
      ended = ended || size == 0;
      for (std::size_t i = 0; i != size; ++i) EXPECT_EQ(buffer[i], static_cast<std::byte>(bytes_read++));
    }
    EXPECT_EQ(bytes_read, rounds);
    EXPECT_EQ(ticked, rounds);
  };
  rt.run(weft::with_scope(body));
}

WEFT_TEST("a receive as a case") {
  const connection both = connected();
  EXPECT_EQ((co_await select(on(both.here.receive()), after(1ms))).index, 1u);
  co_await both.there.write("lent");
  const auto got = co_await select(on(both.here.receive()), after(60s));
  EXPECT_EQ(std::get<0>(got.value).text(), "lent");
}

WEFT_TEST("a read as a case: beside otherwise asks whether there is something") {
  const connection both = connected();
  std::array<std::byte, 8> buffer;
  EXPECT_EQ((co_await select(on(both.here.read(buffer)), weft::otherwise)).index, 1u);
  co_await both.there.write("now");
  EXPECT_EQ((co_await select(on(both.here.read(buffer)), weft::otherwise)).index, 0u);
  EXPECT_EQ((co_await select(on(both.here.read(buffer)), weft::otherwise)).index, 1u);
}

WEFT_TEST("a read as a case: fails as a read does, and ends with the stream") {
  connection both = co_await connected_by_tcp();
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(both.there.native_handle(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  both.there = stream{};
  std::array<std::byte, 4> buffer;
  EXPECT_EQ((co_await weft::as_result(select(on(both.here.read(buffer)), after(60s)))).error(),
            std::errc::connection_reset);
  EXPECT_EQ((co_await weft::as_result(select(on(stream{}.read(buffer)), after(60s)))).error(), weft::errc::closed);

  const auto body = [&](scope& inside) -> task<> {
    connection open = connected();
    std::array<std::byte, 4> into;
    // The read is made here: another thread may wait while this one closes, but not ask the stream for its descriptor.
    auto waiting = inside.fork(weft::as_result(select(on(open.here.read(into)), after(60s))));
    for (int i = 0; i != 3; ++i) co_await weft::yield();
    open.here.close();
    EXPECT_EQ((co_await std::move(waiting)).error(), weft::errc::closed);
  };
  co_await weft::with_scope(body);
}

WEFT_TEST("a read as a case: a stop has had no effect") {
  const connection both = connected();
  std::array<std::byte, 4> buffer;
  const auto waits = [&]() -> task<> { static_cast<void>(co_await select(on(both.here.read(buffer)), after(60s))); };
  for (int i = 0; i != 20; ++i) {
    EXPECT_EQ((co_await weft::as_result(weft::timeout(1ms, waits()))).error(), weft::errc::timed_out);
    co_await both.there.write("kept");
    EXPECT_EQ(co_await read_exactly(both.here, 4), "kept");
  }
}

// ---- in vain ----------------------------------------------------------------------------------------------------------------

// Many wait for one connection; the others were woken for nothing, and wait on, each with the other case it had.
WEFT_TEST("an accept as a case: what was chosen in vain waits on") {
  const listener at = co_await weft::net::listen(anywhere);
  channel<int> numbers{0};
  weft::event over;
  std::atomic<int> accepted = 0, received = 0, stopped = 0;
  const auto waits = [&]() -> task<> {
    const auto got = co_await select(on(at.accept()), on_receive(numbers), on(over.wait()), after(60s));
    EXPECT_NE(got.index, 3u);
    ++(got.index == 0 ? accepted : got.index == 1 ? received : stopped);
  };
  const auto body = [&](scope& inside) -> task<> {
    for (int i = 0; i != 8; ++i) inside.fork(waits());
    for (int i = 0; i != 3; ++i) co_await weft::yield();
    const stream one = co_await weft::net::connect(at.local());
    while (accepted != 1) co_await weft::yield();
    for (int i = 0; i != 4; ++i) co_await numbers.send(i);
    while (received != 4) co_await weft::yield();
    const stream two = co_await weft::net::connect(at.local());
    while (accepted != 2) co_await weft::yield();
    over.set();
  };
  co_await weft::with_scope(body);
  EXPECT_EQ(accepted, 2);
  EXPECT_EQ(received, 4);
  EXPECT_EQ(stopped, 2);
}

WEFT_TEST("an accept as a case: what it sends, or locks, beside it stays as it is") {
  const listener at = co_await weft::net::listen(anywhere);
  channel<std::unique_ptr<int>> values{0};
  weft::mutex door;
  std::atomic<int> accepted = 0;
  const auto waits = [&](int value) -> task<> {
    auto got = co_await select(on(at.accept()), weft::on_send(values, std::make_unique<int>(value)), on(door.lock()));
    if (got.index == 0) ++accepted;
  };
  const auto body = [&](scope& inside) -> task<> {
    {
      const auto held = co_await door.lock();
      for (int i = 0; i != 4; ++i) inside.fork(waits(i));
      for (int i = 0; i != 3; ++i) co_await weft::yield();
      const stream one = co_await weft::net::connect(at.local());
      while (accepted != 1) co_await weft::yield();
      for (int i = 0; i != 2; ++i) {
        const auto value = co_await values.receive();
        EXPECT_TRUE(value && *value && **value >= 0 && **value < 4);
      }
    }
    // The last one has the lock.
  };
  co_await weft::with_scope(body);
  EXPECT_EQ(accepted, 1);
}

// ---- the other ways to select ----------------------------------------------------------------------------------------------

WEFT_TEST("operations as cases: of a vector, of any kind, and perhaps missing") {
  std::vector<connection> those;
  for (int i = 0; i != 5; ++i) those.push_back(connected());
  std::vector<std::array<std::byte, 4>> buffers(those.size());
  co_await those[3].there.write("x");
  const auto reads = [&] {
    std::vector<decltype(on(those[0].here.read(buffers[0])))> all;
    for (std::size_t i = 0; i != those.size(); ++i) all.push_back(on(those[i].here.read(buffers[i])));
    return all;
  };
  const auto [index, size] = co_await select(reads());
  EXPECT_EQ(index, 3u);
  EXPECT_EQ(size, 1u);

  co_await those[2].there.write("xyz");
  std::size_t read = 0;
  std::vector<weft::any_case> kinds;
  kinds.emplace_back(after(60s));
  for (std::size_t i = 0; i != those.size(); ++i)
    kinds.emplace_back(on(those[i].here.read(buffers[i])), [&](std::size_t n) { read = n; });
  EXPECT_EQ(co_await select(std::move(kinds)), 3u);
  EXPECT_EQ(read, 3u);

  co_await those[1].there.write("x");
  EXPECT_EQ((co_await select(weft::on_if(false, on(those[0].here.read(buffers[0]))),
                             weft::on_if(true, on(those[1].here.read(buffers[1])))))
                .index,
            1u);
}

WEFT_TEST("operations as cases: beside a task that runs") {
  const connection both = connected();
  std::array<std::byte, 8> buffer;
  const auto slow = []() -> task<> { co_await weft::sleep_for(1h); };
  co_await both.there.write("first");
  const auto got = co_await select(on(slow()), on(both.here.read(buffer)));
  EXPECT_EQ(got.index, 1u);
  const auto quick = []() -> task<int> { co_return 7; };
  const auto other = co_await select(on(quick()), on(both.here.read(buffer)));
  EXPECT_EQ(other.index, 0u);
  co_await both.there.write("kept");
  EXPECT_EQ(co_await read_exactly(both.here, 4), "kept");
}

WEFT_TEST("a write as a case: some of it, where there is room") {
  const connection both = connected();
  const std::string large(1 << 22, 'x');
  std::size_t sent = 0;
  for (;;) {
    const auto got = co_await select(on(both.here.write_some(bytes(large))), after(5ms));
    if (got.index == 1) break;
    sent += std::get<0>(got.value);
  }
  EXPECT_EQ((co_await read_exactly(both.there, sent)).size(), sent);
  EXPECT_EQ((co_await select(on(both.here.write_some(bytes("room"))), after(60s))).index, 0u);
}

WEFT_TEST("reads and writes of several parts as cases") {
  const connection both = connected();
  std::array<std::byte, 3> one;
  std::array<std::byte, 5> other;
  const std::array<std::span<std::byte>, 2> into{one, other};
  EXPECT_EQ((co_await select(on(both.here.read(into)), after(1ms))).index, 1u);
  const std::array<std::span<const std::byte>, 2> parts{bytes("ab"), bytes("cd")};
  const auto sent = co_await select(on(both.there.write_some(parts)), after(60s));
  EXPECT_EQ(sent.index, 0u);
  EXPECT_EQ(std::get<0>(sent.value), 4u);
  const auto got = co_await select(on(both.here.read(into)), after(60s));
  EXPECT_EQ(got.index, 0u);
  EXPECT_EQ(std::get<0>(got.value), 4u);
  EXPECT_EQ(one[2], std::byte{'c'});
  EXPECT_EQ(other[0], std::byte{'d'});
}

WEFT_TEST("readiness as a case") {
  int ends[2];
  EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  EXPECT_EQ((co_await select(on(weft::net::ready(ends[0], readiness::readable)), after(1ms))).index, 1u);
  const auto got = co_await select(on(weft::net::ready(ends[0], readiness::readable)),
                                   on(weft::net::ready(ends[1], readiness::either)));
  EXPECT_EQ(got.index, 1u);
  EXPECT_EQ(std::get<1>(got.value), readiness::writable);
  EXPECT_EQ(::write(ends[1], "x", 1), 1);
  EXPECT_EQ((co_await select(on(weft::net::ready(ends[0], readiness::either)), after(60s))).index, 0u);
  ::close(ends[0]);
  ::close(ends[1]);
  EXPECT_THROW(static_cast<void>(on(weft::net::ready(ends[0], readiness::readable))), weft::error);
}

TEST(net_select, a_flood_lets_others_run) {
  weft::runtime rt{{.threads = 1}};
  const auto body = [](scope& inside) -> task<> {
    const connection both = connected();
    channel<int> never{0};
    int read = 0, others = 0;
    const auto turns = [&]() -> task<> {
      for (;;) {
        ++others;
        co_await weft::yield();
      }
    };
    auto beside = inside.fork(turns());
    std::array<std::byte, 1> buffer;
    for (int i = 0; i != 1000; ++i) {
      co_await both.there.write("x");
      read += (co_await select(on(both.here.read(buffer)), on_receive(never))).index == 0 ? 1 : 0;
    }
    EXPECT_EQ(read, 1000);
    EXPECT_GE(others, 1000 / 128);
    beside.request_stop();
    EXPECT_TRUE((co_await weft::as_result(std::move(beside))).is_stopped());
  };
  rt.run(weft::with_scope(body));
}

// ---- failures that are not thrown ---------------------------------------------------------------------------------------------

WEFT_TEST("operations: fail without a throw where a task awaits them by as_result") {
  const connection both = connected();
  both.there.shutdown();
  const stream none;
  std::array<std::byte, 4> buffer;
  const auto reads = [&]() -> task<> { co_await weft::nothrow(none.read(buffer)); };
  const auto failed = co_await weft::as_result(reads());
  EXPECT_EQ(failed.error(), weft::errc::closed);
  EXPECT_EQ((co_await weft::as_result(none.write("x"))).error(), weft::errc::closed);
  EXPECT_EQ((co_await weft::as_result(listener{}.accept())).error(), weft::errc::closed);
  try {
    co_await none.read(buffer);
    ADD_FAILURE();
  } catch (const weft::error& thrown) {
    EXPECT_STREQ(thrown.what(), "read: closed: the other end is gone");
  }
}

WEFT_TEST("operations: are tasks where one is asked for, and children") {
  const connection both = connected();
  std::array<std::byte, 4> a, b;
  co_await both.there.write("ab");
  co_await both.here.write("cd");
  const auto [x, y] = co_await weft::when_all(both.here.read(a), both.there.read(b));
  EXPECT_EQ(x + y, 4u);
  task<> written = both.there.write("ef");
  co_await std::move(written);
  task<std::size_t> read = both.here.read(a);
  EXPECT_EQ(co_await std::move(read), 2u);
}

}  // namespace

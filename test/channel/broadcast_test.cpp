// Broadcast and watch by what they do: who gets which value, who waits for whom, what is missed. sweep_channel_test stops
// them everywhere.
#include <weft/channel.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>
#include <weft/broadcast.hpp>
#include <weft/combine.hpp>
#include <weft/fiber.hpp>
#include <weft/pool.hpp>
#include <weft/scope.hpp>
#include <weft/select.hpp>
#include <weft/test.hpp>

#include "support/weft_test.hpp"

namespace {

using namespace std::chrono_literals;
using weft::as_result;
using weft::await;
using weft::broadcast;
using weft::errc;
using weft::on_receive;
using weft::scope;
using weft::select;
using weft::sleep_for;
using weft::slow_receiver;
using weft::sync_wait;
using weft::task;
using weft::timeout;
using weft::watch;
using weft::when_all;
using weft::with_scope;

using shared = std::shared_ptr<const int>;

// ---- broadcast ------------------------------------------------------------------------------------------------------------

WEFT_TEST("broadcast: all get each value that is sent after they have subscribed") {
  broadcast<int> b;
  co_await b.send(1);  // nobody is there
  auto first = b.subscribe();
  co_await b.send(2);
  auto second = b.subscribe();
  EXPECT_EQ(b.receivers(), 2u);
  EXPECT_TRUE(b.try_send(3));
  EXPECT_EQ(co_await first.receive(), 2);
  EXPECT_EQ(first.try_receive(), 3);
  EXPECT_EQ(first.try_receive(), std::nullopt);
  EXPECT_EQ(co_await second.receive(), 3);
  b.close();
  EXPECT_EQ(co_await first.receive(), std::nullopt);
  EXPECT_EQ(co_await second.receive(), std::nullopt);
}

TEST(broadcast, one_that_waits_is_given_its_copy_and_the_last_copy_is_moved) {
  weft::test::run([]() -> task<> {
    broadcast<shared> b;
    auto value = std::make_shared<const int>(5);
    auto waits = b.subscribe(), later = b.subscribe();
    auto receives = [&]() -> task<> {
      const auto got = co_await waits.receive();
      EXPECT_EQ(weft::test::elapsed(), 1ms);
      EXPECT_EQ(value.use_count(), 3) << "here, there, and in the ring for the other one";
    };
    auto sends = [&]() -> task<> {
      co_await sleep_for(1ms);
      EXPECT_EQ(b.stats().waiting, 1u);
      co_await b.send(value);
    };
    co_await when_all(receives(), sends());
    const auto got = later.try_receive();
    EXPECT_EQ(value.use_count(), 2) << "the ring has it no more";
  });
}

TEST(broadcast, a_send_waits_for_the_slowest) {
  weft::test::run([]() -> task<> {
    broadcast<int> b{{.capacity = 2}};
    auto fast = b.subscribe(), slow = b.subscribe();
    auto sends = [&]() -> task<> {
      for (int i = 0; i != 4; ++i) co_await b.send(i);
      EXPECT_EQ(weft::test::elapsed(), 20ms) << "two have room, then one each time that the slow one receives";
      EXPECT_FALSE(b.try_send(4));
      b.close();
    };
    auto receives = [](broadcast<int>::receiver& from, std::chrono::milliseconds each) -> task<> {
      int expected = 0;
      for (;;) {
        co_await sleep_for(each);
        const auto value = co_await from.receive();
        if (!value) break;
        EXPECT_EQ(*value, expected++);
      }
      EXPECT_EQ(expected, 4);
      EXPECT_EQ(from.missed(), 0u);
    };
    co_await when_all(sends(), receives(fast, 1ms), receives(slow, 10ms));
  });
}

TEST(broadcast, one_that_leaves_is_not_waited_for) {
  weft::test::run([]() -> task<> {
    broadcast<int> b{{.capacity = 1}};
    auto stays = b.subscribe();
    auto leaves = b.subscribe();
    co_await b.send(1);
    EXPECT_EQ(co_await stays.receive(), 1);
    auto sends = [&]() -> task<> {
      co_await b.send(2);
      EXPECT_EQ(weft::test::elapsed(), 5ms);
    };
    auto goes = [&]() -> task<> {
      co_await sleep_for(5ms);
      leaves.leave();
    };
    co_await when_all(sends(), goes());
    EXPECT_FALSE(leaves);
    EXPECT_EQ(b.receivers(), 1u);
    EXPECT_EQ(stays.try_receive(), 2);
  });
}

WEFT_TEST("broadcast: with drop_oldest a slow one misses values, and is told how many") {
  broadcast<int> b{{.capacity = 2, .slow = slow_receiver::drop_oldest}};
  auto mine = b.subscribe();
  for (int i = 0; i != 5; ++i) co_await b.send(i);
  EXPECT_EQ(co_await mine.receive(), 3);
  EXPECT_EQ(mine.missed(), 3u);
  EXPECT_EQ(co_await mine.receive(), 4);
  EXPECT_EQ(mine.missed(), 3u);
}

WEFT_TEST("broadcast: with end a slow one gets nothing more, and the others all") {
  broadcast<int> b{{.capacity = 2, .slow = slow_receiver::end}};
  auto slow = b.subscribe(), fast = b.subscribe();
  for (int i = 0; i != 3; ++i) {
    co_await b.send(i);
    EXPECT_EQ(co_await fast.receive(), i);
  }
  const auto late = co_await as_result(slow.receive());
  EXPECT_EQ(late.error(), errc::closed);
  EXPECT_THROW(static_cast<void>(slow.try_receive()), weft::receiver_too_slow);
  EXPECT_EQ(slow.missed(), 1u);
  EXPECT_EQ(b.receivers(), 1u);
}

WEFT_TEST("broadcast: closed, what is there is received, and a sender gets its value back") {
  broadcast<shared> b{{.capacity = 1}};
  auto mine = b.subscribe();
  co_await b.send(std::make_shared<const int>(1));
  auto sends = [&]() -> task<> {
    try {
      co_await b.send(std::make_shared<const int>(2));
      ADD_FAILURE() << "it was sent";
    } catch (weft::channel_closed<shared>& failed) {
      EXPECT_EQ(*failed.value(), 2);
    }
  };
  auto closes = [&]() -> task<> {
    b.close();
    co_return;
  };
  co_await when_all(sends(), closes());
  EXPECT_TRUE(b.is_closed());
  EXPECT_FALSE(b.try_send(nullptr));
  auto values = mine.values();
  EXPECT_EQ(**co_await values.next(), 1);
  EXPECT_EQ(co_await values.next(), nullptr);
}

TEST(broadcast, a_receive_that_timed_out_misses_nothing) {
  weft::test::run([]() -> task<> {
    broadcast<int> b;
    auto mine = b.subscribe();
    EXPECT_EQ((co_await as_result(timeout(5ms, mine.receive()))).error(), errc::timed_out);
    co_await b.send(7);
    EXPECT_EQ(co_await mine.receive(), 7);
  });
}

WEFT_TEST("broadcast: a receiver is a case of a select") {
  broadcast<int> b{{.capacity = 1}};
  weft::channel<int> c{1};
  auto mine = b.subscribe();
  co_await c.send(1);
  EXPECT_EQ((co_await select(on_receive(mine), on_receive(c))).index, 1u);
  co_await b.send(2);
  const auto got = co_await select(on_receive(mine), on_receive(c));
  EXPECT_EQ(std::get<0>(got.value), 2);
  auto chooses = [&]() -> task<> {
    const auto later = co_await select(on_receive(c), on_receive(mine));
    EXPECT_EQ(std::get<1>(later.value), 3);
  };
  co_await when_all(chooses(), b.send(3));
  EXPECT_EQ(mine.try_receive(), std::nullopt);
}

// Each receiver gets each value once and in order, whatever the threads do.
TEST(broadcast, all_get_all_from_many_threads) {
  broadcast<int> b{{.capacity = 3}};
  weft::pool p{{.threads = 3}};
  const int each = test::rounds(1000);
  constexpr int senders = 2;
  auto receives = [&](broadcast<int>::receiver mine) -> task<> {
    int next[senders] = {};
    while (auto value = co_await mine.receive()) EXPECT_EQ(*value / senders, next[*value % senders]++);
    for (const int count : next) EXPECT_EQ(count, each);
  };
  auto sends = [&](int from) -> task<> {
    for (int i = 0; i != each; ++i) co_await b.send(i * senders + from);
  };
  auto all_send = [&](scope& s) -> task<> {
    for (int i = 0; i != senders; ++i) s.fork_on(p.executor(), sends, i);
    co_return;
  };
  std::jthread thread{[mine = b.subscribe(), all = senders * each]() mutable {
    int count = 0;
    while (sync_wait(mine.receive())) ++count;
    EXPECT_EQ(count, all);
  }};
  auto body = [&](scope& s) -> task<> {
    for (int i = 0; i != 3; ++i) s.fork_on(p.executor(), receives, b.subscribe());
    co_await with_scope(all_send);
    b.close();
  };
  sync_wait(with_scope(body));
}

TEST(broadcast_death, is_not_destroyed_before_its_receivers) {
  EXPECT_DEATH(
      {
        auto b = std::make_unique<broadcast<int>>();
        new auto(b->subscribe());
        b.reset();
      },
      "broadcast was destroyed while a receiver of it is left");
}
TEST(broadcast_death, has_room) { EXPECT_DEATH(broadcast<int>({.capacity = 0}), "has room for a value at least"); }
TEST(broadcast_death, one_that_has_left_does_not_receive) {
  EXPECT_DEATH(static_cast<void>(broadcast<int>::receiver{}.try_receive()), "a receiver that has left");
}

template <class Source, class Misuse>
void is_misused_while_it_waits(Source& source, Misuse misuse) {
  auto mine = std::make_unique<typename Source::receiver>(source.subscribe());
  static_cast<void>(mine->try_receive());
  auto waits = [&]() -> task<> { co_await mine->receive(); };
  auto does = [&]() -> task<> { co_return misuse(mine); };
  auto both = [&]() -> task<> { co_await when_all(waits(), does()); };
  sync_wait(both());
}
TEST(receiver_death, stays_where_it_is_while_somebody_waits_with_it) {
  constexpr auto broken = "a receiver was moved, destroyed or told to leave while somebody waits with it";
  broadcast<int> b;
  EXPECT_DEATH(is_misused_while_it_waits(b, [](auto& mine) { mine.reset(); }), broken);
  EXPECT_DEATH(is_misused_while_it_waits(b, [](auto& mine) { mine->leave(); }), broken);
  EXPECT_DEATH(is_misused_while_it_waits(b, [](auto& mine) { auto other = std::move(*mine); }), broken);
  watch<int> w{1};
  EXPECT_DEATH(is_misused_while_it_waits(w, [](auto& mine) { *mine = {}; }), broken);
}
TEST(receiver_death, is_of_one_at_a_time) {
  constexpr auto broken = "two wait with one receiver";
  broadcast<int> b;
  watch<int> w{1};
  const auto receives = [](auto& mine) {
    weft::start(weft::detail::as_task(select(on_receive(*mine), weft::on_stop({}))), [](auto) {});
  };
  const auto receives_in_task = [](auto& mine) { weft::start(weft::detail::as_task(mine->receive()), [](auto) {}); };
  EXPECT_DEATH(is_misused_while_it_waits(b, receives_in_task), broken);
  EXPECT_DEATH(is_misused_while_it_waits(w, receives_in_task), broken);
  EXPECT_DEATH(is_misused_while_it_waits(w, receives), broken);
}
TEST(receiver, goes_on_after_each_way_in_which_a_wait_ends) {
  weft::test::run([]() -> task<> {
    broadcast<int> b;
    auto mine = b.subscribe();
    auto early = co_await as_result(timeout(1ms, mine.receive()));
    EXPECT_EQ(early.error(), errc::timed_out);
    auto chosen = co_await select(on_receive(mine), on_receive(mine), weft::after(1ms));  // twice: the same wait
    EXPECT_EQ(chosen.index, 2u);
    auto sends = [&]() -> task<> { co_return static_cast<void>(b.try_send(1)); };
    auto receives = [&]() -> task<> {
      auto got = co_await select(on_receive(mine), weft::after(1s));
      EXPECT_EQ(std::get<0>(got.value), 1);
    };
    co_await when_all(receives(), sends());
    auto closes = [&]() -> task<> { co_return b.close(); };
    auto ends = [&]() -> task<> {
      const auto none = co_await mine.receive();
      EXPECT_FALSE(none.has_value());
    };
    co_await when_all(ends(), closes());
    auto moved = std::move(mine);
    const auto none = co_await moved.receive();
    EXPECT_FALSE(none.has_value());
  });
}

// ---- watch ----------------------------------------------------------------------------------------------------------------

WEFT_TEST("watch: gives the value as it is, and again when it was set") {
  watch<int> w{1};
  auto mine = w.subscribe();
  EXPECT_EQ(co_await mine.receive(), 1);
  EXPECT_EQ(mine.try_receive(), std::nullopt);
  EXPECT_TRUE(w.set(2));
  EXPECT_TRUE(w.set(3));
  EXPECT_EQ(w.get(), 3);
  EXPECT_EQ(co_await mine.receive(), 3);
  EXPECT_EQ(mine.missed(), 1u);
  auto waits = [&]() -> task<> { EXPECT_EQ(co_await mine.receive(), 4); };
  auto sets = [&]() -> task<> {
    EXPECT_EQ(w.stats().waiting, 1u);
    w.set(4);
    co_return;
  };
  co_await when_all(waits(), sets());
  w.set(5);
  w.close();
  EXPECT_FALSE(w.set(6));
  EXPECT_EQ(co_await mine.receive(), 5);
  EXPECT_EQ(co_await mine.receive(), std::nullopt);
  EXPECT_EQ(w.get(), 5);
}

TEST(watch, what_it_was_is_destroyed_when_it_is_set) {
  auto old = std::make_shared<const int>(1);
  watch<shared> w{old};
  w.set(nullptr);
  EXPECT_EQ(old.use_count(), 1);
}

TEST(watch, closing_ends_those_that_wait) {
  weft::test::run([]() -> task<> {
    watch<int> w{0};
    auto mine = w.subscribe();
    static_cast<void>(co_await mine.receive());
    auto waits = [&]() -> task<> {
      EXPECT_EQ(co_await mine.receive(), std::nullopt);
      EXPECT_EQ(weft::test::elapsed(), 2ms);
    };
    auto closes = [&]() -> task<> {
      co_await sleep_for(2ms);
      w.close();
    };
    co_await when_all(waits(), closes());
  });
}

// Who receives sees values that only grow, and the last one.
TEST(watch, all_see_the_last_value_from_many_threads) {
  watch<int> w{0};
  weft::pool p{{.threads = 2}};
  const int last = test::rounds(3000);
  auto follows = [&](watch<int>::receiver mine) -> task<> {
    int seen = -1;
    std::uint64_t count = 0;
    while (auto value = co_await mine.receive()) {
      EXPECT_GT(*value, seen);
      seen = *value;
      ++count;
    }
    EXPECT_EQ(seen, last);
    EXPECT_EQ(count + mine.missed(), static_cast<std::uint64_t>(last) + 1);
  };
  std::vector<watch<int>::receiver> receivers;
  for (int i = 0; i != 3; ++i) receivers.push_back(w.subscribe());
  std::jthread sets{[&] {
    for (int i = 1; i <= last; ++i) w.set(i);
    w.close();
  }};
  auto body = [&](scope& s) -> task<> {
    for (auto& mine : receivers) s.fork_on(p.executor(), follows, std::move(mine));
    co_return;
  };
  sync_wait(with_scope(body));
}

TEST(watch_death, is_not_destroyed_before_its_receivers) {
  EXPECT_DEATH(
      {
        auto w = std::make_unique<watch<int>>(1);
        new auto(w->subscribe());
        w.reset();
      },
      "watch was destroyed while a receiver of it is left");
}

// ---- in fibers --------------------------------------------------------------------------------------------------------------

WEFT_TEST("broadcast, watch: a fiber leaves its stack only to wait") {
  broadcast<int> b{{.capacity = 2}};
  broadcast<int> drops{{.capacity = 1, .slow = slow_receiver::drop_oldest}};
  broadcast<int> ends{{.capacity = 1, .slow = slow_receiver::end}};
  watch<int> w{1};
  auto mine = b.subscribe(), behind = b.subscribe();
  auto dropped = drops.subscribe();
  auto slow = ends.subscribe();
  auto seen = w.subscribe();
  auto body = [&](scope& s) -> task<> {
    co_await s.go([&] {
      const std::size_t before = weft::fibers().switches;
      await(b.send(1));
      await(b.send(2));
      EXPECT_EQ(await(mine.receive()), 1);
      EXPECT_EQ(await(mine.receive()), 2);
      await(drops.send(1));
      await(drops.send(2));
      EXPECT_EQ(await(dropped.receive()), 2);
      await(ends.send(1));
      await(ends.send(2));
      EXPECT_THROW(static_cast<void>(await(slow.receive())), weft::receiver_too_slow);
      EXPECT_THROW(static_cast<void>(await(slow.receive())), weft::receiver_too_slow);
      EXPECT_EQ(await(seen.receive()), 1);
      EXPECT_EQ(weft::fibers().switches, before);
    });
    // `behind` has all there is room for, and the others have all there is: both wait, and are served.
    weft::fork<void> sends = s.go([&] { await(b.send(3)); });
    weft::fork<std::optional<int>> receives = s.go([&] { return await(mine.receive()); });
    weft::fork<std::optional<int>> looks = s.go([&] { return await(seen.receive()); });
    co_await weft::yield();
    EXPECT_EQ(b.stats().waiting, 2u);
    EXPECT_EQ(w.stats().waiting, 1u);
    co_await s.go([&] {
      const std::size_t before = weft::fibers().switches;
      EXPECT_EQ(await(behind.receive()), 1);  // and what waits to be sent comes in
      w.set(2);
      EXPECT_EQ(weft::fibers().switches, before);
    });
    co_await std::move(sends);
    EXPECT_EQ(co_await std::move(receives), 3);
    EXPECT_EQ(co_await std::move(looks), 2);
    weft::fork<void> told;
    told = s.go([&] {
      weft::this_fiber::yield();
      told.request_stop();
      await(drops.send(3));  // there is room
      ADD_FAILURE() << "it went on";
    });
    while (told.status() == weft::fork_status::running) co_await weft::yield();
    const auto sent = co_await as_result(std::move(told));
    EXPECT_TRUE(sent.is_stopped());
    EXPECT_EQ(dropped.try_receive(), std::nullopt);
    told = s.go([&] {
      weft::this_fiber::yield();
      told.request_stop();
      static_cast<void>(await(behind.receive()));  // there is one
      ADD_FAILURE() << "it went on";
    });
    while (told.status() == weft::fork_status::running) co_await weft::yield();
    const auto received = co_await as_result(std::move(told));
    EXPECT_TRUE(received.is_stopped());
    EXPECT_EQ(behind.try_receive(), 2);
    b.close();
    w.close();
    co_await s.go([&] {
      const std::size_t before = weft::fibers().switches;
      EXPECT_EQ(await(mine.receive()), std::nullopt);
      EXPECT_EQ(await(seen.receive()), std::nullopt);
      EXPECT_THROW(await(b.send(4)), weft::channel_closed<int>);
      EXPECT_EQ(weft::fibers().switches, before);
    });
  };
  co_await with_scope(body);
}

}  // namespace

// Channels and select by what they do. What the Go project's own tests of channels check is here by behaviour: closed and
// never-ready channels, fairness, the prime sieve, selects with hundreds of cases, selects against selects.
// sweep_channel_test stops them everywhere.
#include <weft/channel.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>
#include <weft/combine.hpp>
#include <weft/fiber.hpp>
#include <weft/pool.hpp>
#include <weft/scope.hpp>
#include <weft/select.hpp>
#include <weft/test.hpp>

#include "support/weft_test.hpp"

namespace {

using namespace std::chrono_literals;
using weft::after;
using weft::as_result;
using weft::await;
using weft::channel;
using weft::errc;
using weft::on_receive;
using weft::on_send;
using weft::otherwise;
using weft::scope;
using weft::select;
using weft::sleep_for;
using weft::sync_wait;
using weft::task;
using weft::timeout;
using weft::unbounded;
using weft::when_all;
using weft::with_scope;

// What a range-for takes, of one pass; of C++17 it is no iterator.
using channel_iterator = decltype(std::declval<weft::channel<int>&>().begin());
static_assert(std::input_iterator<channel_iterator> && !std::forward_iterator<channel_iterator>);
static_assert(std::sentinel_for<std::default_sentinel_t, channel_iterator>);
template <class It>
concept has_category = requires { typename std::iterator_traits<It>::iterator_category; };
static_assert(!has_category<channel_iterator>);

// ---- channel --------------------------------------------------------------------------------------------------------------

// Thirty thousand pairs of them are in use at once: every cache line of one counts.
static_assert(sizeof(channel<int>) <= 96);

WEFT_TEST("channel: gives values in the order in which they were sent") {
  channel<std::string> c{3};
  co_await c.send("a");
  co_await c.send("b");
  EXPECT_TRUE(c.try_send("c"));
  EXPECT_FALSE(c.try_send("d"));
  EXPECT_EQ(c.size(), 3u);
  EXPECT_EQ(c.capacity(), 3u);
  EXPECT_EQ(co_await c.receive(), "a");
  EXPECT_EQ(c.try_receive(), "b");
  EXPECT_EQ(co_await c.receive(), "c");
  EXPECT_EQ(c.try_receive(), std::nullopt);
}

TEST(channel, a_send_waits_while_it_is_full_and_a_receive_while_it_is_empty) {
  weft::test::run([]() -> task<> {
    channel<int> c{1};
    auto sends = [&]() -> task<> {
      for (int i = 0; i != 4; ++i) co_await c.send(i);
      EXPECT_EQ(weft::test::elapsed(), 3ms) << "the last one has room when three were received";
      c.close();
    };
    auto receives = [&]() -> task<> {
      int expected = 0;
      co_await sleep_for(1ms);
      while (auto value = co_await c.receive()) {
        EXPECT_EQ(*value, expected++);
        co_await sleep_for(1ms);
      }
      EXPECT_EQ(expected, 4);
    };
    co_await when_all(sends(), receives());
  });
}

TEST(channel, a_rendezvous_holds_nothing) {
  weft::test::run([]() -> task<> {
    channel<int> c{0};
    EXPECT_FALSE(c.try_send(1));
    auto sends = [&]() -> task<> {
      co_await c.send(1);
      EXPECT_EQ(weft::test::elapsed(), 3ms);
    };
    auto receives = [&]() -> task<> {
      co_await sleep_for(3ms);
      EXPECT_EQ(c.size(), 0u);
      EXPECT_EQ(c.stats().waiting, 1u);
      EXPECT_EQ(co_await c.receive(), 1);
    };
    co_await when_all(sends(), receives());
  });
}

WEFT_TEST("channel: one without bound takes whatever is sent, in order") {
  channel<std::unique_ptr<int>> c{unbounded};
  for (int i = 0; i != 1000; ++i) co_await c.send(std::make_unique<int>(i));
  for (int i = 0; i != 500; ++i) EXPECT_EQ(**co_await c.receive(), i);
  for (int i = 1000; i != 3000; ++i) EXPECT_TRUE(c.try_send(std::make_unique<int>(i)));
  for (int i = 500; i != 3000; ++i) EXPECT_EQ(**co_await c.receive(), i);
  EXPECT_EQ(c.size(), 0u);
}

WEFT_TEST("channel: closed, it is drained, and a sender gets its value back") {
  channel<std::unique_ptr<int>> c{1};
  co_await c.send(std::make_unique<int>(1));
  c.close();
  c.close();
  EXPECT_TRUE(c.is_closed());
  EXPECT_EQ(**co_await c.receive(), 1);
  EXPECT_EQ(co_await c.receive(), std::nullopt);
  EXPECT_EQ(co_await c.receive(), std::nullopt);
  try {
    co_await c.send(std::make_unique<int>(2));
    ADD_FAILURE() << "it was sent";
  } catch (weft::channel_closed<std::unique_ptr<int>>& failed) {
    EXPECT_EQ(failed.code(), errc::closed);
    EXPECT_EQ(*failed.value(), 2);
  }
  auto mine = std::make_unique<int>(3);
  EXPECT_FALSE(c.try_send(std::move(mine)));
  EXPECT_EQ(*mine, 3) << "it is as it was";
}

WEFT_TEST("channel: closing wakes all that wait") {
  channel<int> empty{0}, full{1};
  co_await full.send(1);
  int ended = 0;
  auto receives = [&]() -> task<> {
    EXPECT_EQ(co_await empty.receive(), std::nullopt);
    ++ended;
  };
  auto sends = [&]() -> task<> {
    const auto how = co_await as_result(full.send(2));
    EXPECT_EQ(how.error(), errc::closed);
    ++ended;
  };
  auto closes = [&]() -> task<> {
    empty.close();
    full.close();
    co_return;
  };
  co_await when_all(receives(), receives(), sends(), sends(), closes());
  EXPECT_EQ(ended, 4);
  EXPECT_EQ(co_await full.receive(), 1);
}

TEST(channel, a_receive_that_timed_out_does_not_eat_the_next_value) {
  weft::test::run([]() -> task<> {
    channel<int> numbers{1};
    const auto early = co_await as_result(timeout(5ms, numbers.receive()));
    EXPECT_EQ(early.error(), errc::timed_out);
    EXPECT_EQ(weft::test::elapsed(), 5ms);
    co_await numbers.send(7);
    EXPECT_EQ(co_await numbers.receive(), 7);
  });
}

WEFT_TEST("channel: who waits is served in the order of arrival") {
  channel<int> c{0};
  std::array<int, 3> got{};
  auto receives = [&](std::size_t which) -> task<> {
    const auto value = co_await c.receive();
    got[which] = *value;
  };
  auto sends = [&]() -> task<> {
    for (int i = 0; i != 3; ++i) co_await c.send(i);
  };
  co_await when_all(receives(0), receives(1), receives(2), sends());
  EXPECT_EQ(got, (std::array{0, 1, 2}));
}

WEFT_TEST("channel: a fiber leaves its stack only to wait") {
  channel<int> c{2}, full{1}, growing{unbounded};
  EXPECT_TRUE(full.try_send(0));
  auto body = [&](scope& s) -> task<> {
    auto receives = [&] { return await(c.receive()); };
    weft::fork<std::optional<int>> waits = s.go(receives);
    co_await s.go([&] {
      const std::size_t before = weft::fibers().switches;
      await(c.send(1));  // to the one that waits
      await(c.send(2));
      await(c.send(3));
      EXPECT_EQ(await(c.receive()), 2);
      EXPECT_EQ(await(c.receive()), 3);
      for (int i = 0; i != 40; ++i)
        if (i % 16 != 0)
          await(growing.send(i));  // which has grown by a switch each time
        else
          static_cast<void>(growing.try_send(i));
      c.close();
      EXPECT_EQ(await(c.receive()), std::nullopt);
      EXPECT_THROW(await(c.send(4)), weft::channel_closed<int>);
      EXPECT_EQ(weft::fibers().switches, before);
    });
    EXPECT_EQ(co_await std::move(waits), 1);
    weft::fork<void> sends = s.go([&] { await(full.send(1)); });
    EXPECT_EQ(co_await s.go([&] { return await(full.receive()); }), 0);  // and the sender's comes in
    co_await std::move(sends);
    EXPECT_EQ(full.try_receive(), 1);
    weft::fork<void> is_told = s.go([&] {
      weft::this_fiber::yield();
      await(full.send(2));  // there is room
      ADD_FAILURE() << "it went on";
    });
    is_told.request_stop();
    const auto how = co_await as_result(std::move(is_told));
    EXPECT_TRUE(how.is_stopped());
    EXPECT_EQ(full.size(), 0u);
  };
  co_await with_scope(body);
}

WEFT_TEST("channel: its values are a generator") {
  channel<int> c{4};
  for (int i = 1; i != 5; ++i) co_await c.send(i);
  c.close();
  int sum = 0;
  auto values = c.values();
  while (const int* value = co_await values.next()) sum += *value;
  EXPECT_EQ(sum, 10);
}

TEST(channel, is_a_range_in_fibers_and_on_threads) {
  static_assert(std::ranges::input_range<channel<int>>);
  channel<std::unique_ptr<int>> there{1};
  channel<int> back{0};
  auto sends = [&]() -> task<> {
    for (int i = 1; i != 5; ++i) co_await there.send(std::make_unique<int>(i));
    there.close();
  };
  auto doubles = [&] {
    for (auto& value : there) {
      const std::unique_ptr<int> mine = std::move(value);
      weft::await(back.send(2 * *mine));
    }
    back.close();
  };
  auto body = [&](scope& s) -> task<> {
    s.fork(sends());
    s.go(doubles);
    co_return;
  };
  weft::pool p{{.threads = 1}};
  std::jthread beside{[&] { sync_wait(weft::start_on(p.executor(), with_scope(body))); }};
  std::vector<int> got;
  for (const int value : back) got.push_back(value);
  EXPECT_EQ(got, (std::vector{2, 4, 6, 8}));
}

// The last value is still the loop's when the stop comes, and no other was taken from the channel.
TEST(channel, a_stop_ends_the_range_of_a_fiber) {
  weft::test::run([]() -> task<> {
    channel<int> c{4};
    co_await c.send(1);
    int sum = 0;
    auto adds = [&] {
      for (const int value : c) sum += value;
    };
    auto body = [&](scope& s) -> task<> {
      auto adding = s.go(adds);
      co_await sleep_for(1ms);
      adding.request_stop();
      EXPECT_TRUE((co_await as_result(std::move(adding))).is_stopped());
      co_await c.send(2);
    };
    co_await with_scope(body);
    EXPECT_EQ(sum, 1);
    EXPECT_EQ(c.size(), 1u);
  });
}

TEST(channel_death, is_no_range_in_a_task) {
  EXPECT_DEATH(
      {
        channel<int> c{1};
        auto adds = [&]() -> task<int> {
          int sum = 0;
          for (const int value : c) sum += value;
          co_return sum;
        };
        sync_wait(adds());
      },
      "sync_wait was called inside a task");
}

TEST(channel_death, is_not_destroyed_under_a_waiter) {
  EXPECT_DEATH(
      {
        auto c = std::make_unique<channel<int>>(0);
        weft::start(weft::detail::as_task(c->receive()), [](auto) {});
        c.reset();
      },
      "channel was destroyed while somebody waits in it");
}

// Each value arrives once, whoever sends and receives where.
void many_to_many(std::size_t capacity, bool is_unbounded) {
  std::unique_ptr<channel<int>> c =
      is_unbounded ? std::make_unique<channel<int>>(unbounded) : std::make_unique<channel<int>>(capacity);
  weft::pool p{{.threads = 3}};
  const int senders = 5, each = test::rounds(2000);  // a plain thread, tasks, and a fiber
  std::vector<std::atomic<int>> seen(static_cast<std::size_t>(senders * each));
  auto sends = [&](int from) -> task<> {
    for (int i = 0; i != each; ++i) co_await c->send(from * each + i);
  };
  auto receives = [&]() -> task<> {
    while (auto value = co_await c->receive()) ++seen[static_cast<std::size_t>(*value)];
  };
  auto all_send = [&](scope& s) -> task<> {
    for (int i = 1; i != senders - 1; ++i) s.fork(sends, i);
    s.go([&] {
      for (int i = 0; i != each; ++i) weft::await(c->send((senders - 1) * each + i));
    });
    co_return;
  };
  auto body = [&](scope& s) -> task<> {
    for (int i = 0; i != 3; ++i) s.fork(receives);
    s.go([&] {
      while (auto value = weft::await(c->receive())) ++seen[static_cast<std::size_t>(*value)];
    });
    co_await with_scope(all_send);
  };
  std::jthread plain{[&] {
    for (int i = 0; i != each; ++i) sync_wait(c->send(int{i}));
    while (c->size() != 0) std::this_thread::yield();
  }};
  auto all = [&]() -> task<> {
    auto closes = [&]() -> task<> {
      while (std::accumulate(seen.begin(), seen.end(), 0, [](int a, const auto& b) { return a + b.load(); }) !=
             senders * each)
        co_await sleep_for(1ms);
      c->close();
    };
    co_await when_all(with_scope({.executor = &p.executor()}, body), closes());
  };
  sync_wait(all());
  plain.join();
  EXPECT_TRUE(std::ranges::all_of(seen, [](const auto& n) { return n == 1; }));
}
TEST(channel, every_value_arrives_once_through_a_rendezvous) { many_to_many(0, false); }
TEST(channel, every_value_arrives_once_through_a_small_one) { many_to_many(2, false); }
TEST(channel, every_value_arrives_once_without_a_bound) { many_to_many(0, true); }

// The sieve of Eratosthenes, a task for each prime.
TEST(channel, the_prime_sieve) {
  auto generate = [](channel<int>& out) -> task<> {
    for (int i = 2;; ++i) co_await out.send(int{i});
  };
  auto filter = [](channel<int>& in, channel<int>& out, int prime) -> task<> {
    for (;;)
      if (const int value = *co_await in.receive(); value % prime != 0) co_await out.send(int{value});
  };
  auto all = [&]() -> task<int> {
    std::vector<std::unique_ptr<channel<int>>> chain;
    int last = 0;
    auto sieve = [&](scope& s) -> task<> {
      chain.push_back(std::make_unique<channel<int>>(0));
      s.fork(generate, std::ref(*chain.back()));
      for (int i = 0; i != 50; ++i) {
        last = *co_await chain.back()->receive();
        chain.push_back(std::make_unique<channel<int>>(0));
        s.fork(filter, std::ref(*chain[chain.size() - 2]), std::ref(*chain.back()), last);
      }
      s.request_stop();
    };
    static_cast<void>(co_await as_result(with_scope(sieve)));
    co_return last;
  };
  EXPECT_EQ(sync_wait(all()), 229);
}

// ---- select ---------------------------------------------------------------------------------------------------------------

WEFT_TEST("select: does what is ready, and says which") {
  channel<int> a{1};
  channel<std::string> b{1};
  co_await b.send("hello");
  auto got = co_await select(on_receive(a), on_receive(b));
  EXPECT_EQ(got.index, 1u);
  EXPECT_EQ(std::get<1>(got.value), "hello");
  EXPECT_EQ((co_await select(on_receive(b), on_send(a, 7))).index, 1u);
  EXPECT_EQ(co_await a.receive(), 7);
}

WEFT_TEST("select: otherwise, if nothing is") {
  channel<int> never{0};
  EXPECT_EQ((co_await select(on_receive(never), on_send(never, 1), otherwise)).index, 2u);
  EXPECT_EQ((co_await select(otherwise, on_receive(never))).index, 0u);
  channel<int> there{1};
  co_await there.send(3);
  const auto got = co_await select(otherwise, on_receive(there));
  EXPECT_EQ(got.index, 1u);
  EXPECT_EQ(std::get<1>(got.value), 3);
  EXPECT_EQ(never.stats().waits, 0u);
}

TEST(select, waits_for_the_first_and_leaves_all_other_lines) {
  weft::test::run([]() -> task<> {
    channel<int> a{0}, b{0};
    auto chooses = [&]() -> task<> {
      const auto got = co_await select(on_receive(a), on_receive(b), after(1h));
      EXPECT_EQ(got.index, 1u);
      EXPECT_EQ(std::get<1>(got.value), 5);
      EXPECT_EQ(a.stats().waiting, 0u);
    };
    auto sends = [&]() -> task<> {
      co_await sleep_for(2ms);
      EXPECT_EQ(a.stats().waiting, 1u);
      co_await b.send(5);
    };
    co_await when_all(chooses(), sends());
    EXPECT_EQ(weft::test::elapsed(), 2ms) << "the timer was cancelled";
    EXPECT_FALSE(a.try_send(1));
  });
}

TEST(select, goes_on_after_a_time) {
  weft::test::run([]() -> task<> {
    channel<int> never{0};
    EXPECT_EQ((co_await select(on_receive(never), after(5ms))).index, 1u);
    EXPECT_EQ(weft::test::elapsed(), 5ms);
    EXPECT_EQ((co_await select(after(5ms), after(3ms))).index, 1u);
    EXPECT_EQ(weft::test::elapsed(), 8ms);
    EXPECT_EQ((co_await select(on_receive(never), after(0ms))).index, 1u);
    EXPECT_EQ(weft::test::elapsed(), 8ms);
  });
}

WEFT_TEST("select: a closed channel is ready: to receive nothing, and to fail a send") {
  channel<std::unique_ptr<int>> c{0}, never{0};
  c.close();
  const auto got = co_await select(on_receive(never), on_receive(c));
  EXPECT_EQ(got.index, 1u);
  EXPECT_FALSE(std::get<1>(got.value).has_value());
  try {
    static_cast<void>(co_await select(on_send(c, std::make_unique<int>(4)), on_receive(never)));
    ADD_FAILURE() << "it was sent";
  } catch (weft::channel_closed<std::unique_ptr<int>>& failed) {
    EXPECT_EQ(*failed.value(), 4);
  }
}

WEFT_TEST("select: both ends of one channel in one select do not meet themselves") {
  channel<int> c{0};
  EXPECT_EQ((co_await select(on_send(c, 1), on_receive(c), otherwise)).index, 2u);
  auto other = [&]() -> task<> { EXPECT_EQ(co_await c.receive(), 2); };
  auto both = [&]() -> task<> { EXPECT_EQ((co_await select(on_receive(c), on_send(c, 2))).index, 1u); };
  co_await when_all(both(), other());
}

WEFT_TEST("select: two selects meet") {
  channel<int> a{0}, b{0};
  std::size_t sent = 9, received = 9;
  auto sends = [&]() -> task<> { sent = (co_await select(on_send(a, 1), on_send(b, 2))).index; };
  auto receives = [&]() -> task<> {
    const auto got = co_await select(on_receive(b), on_receive(a));
    received = got.index;
  };
  co_await when_all(sends(), receives());
  EXPECT_EQ(sent + received, 1u) << "the same channel, which each names at another place";
}

WEFT_TEST("select: is fair among the ready ones") {
  channel<int> a{unbounded}, b{unbounded};
  for (int i = 0; i != 2000; ++i) co_await a.send(1), co_await b.send(2);
  int from_a = 0;
  for (int i = 0; i != 1000; ++i)
    if ((co_await select(on_receive(a), on_receive(b))).index == 0) ++from_a;
  EXPECT_GT(from_a, 350);
  EXPECT_LT(from_a, 650);
}

WEFT_TEST("select: over hundreds of channels that only the run knows") {
  std::vector<std::unique_ptr<channel<int>>> all;
  for (int i = 0; i != 300; ++i) all.push_back(std::make_unique<channel<int>>(1));
  auto cases = [&] {
    std::vector<weft::receive_case<int>> them;
    for (auto& one : all) them.push_back(on_receive(*one));
    return them;
  };
  for (const std::size_t which : {0u, 299u, 123u}) {
    auto sends = [&]() -> task<> { co_await all[which]->send(static_cast<int>(which)); };
    auto chooses = [&]() -> task<> {
      const auto got = co_await select(cases());
      EXPECT_EQ(got.index, which);
      EXPECT_EQ(got.value, static_cast<int>(which));
    };
    co_await when_all(chooses(), sends());
  }
}

WEFT_TEST("select: on a plain thread") {
  channel<int> a{0}, b{0};
  std::jthread thread{[&] {
    const auto got = sync_wait(select(on_receive(a), on_receive(b)));
    EXPECT_EQ(std::get<1>(got.value), 8);
  }};
  co_await b.send(8);
}

// A task, a fiber and a thread on one channel and one mutex.
TEST(select, is_one_for_tasks_fibers_and_threads) {
  weft::mutex m;
  int count = 0;  // under m
  channel<int> values{0}, never{0};
  weft::pool p{{.threads = 2}};
  const int each = test::rounds(1000);
  auto sends = [&]() -> task<> {
    for (int i = 0; i != 2 * each; ++i) {
      co_await values.send(1);
      const auto held = co_await m.lock();
      ++count;
    }
    values.close();
  };
  auto receives = [&] {
    while (std::get<1>(weft::await(select(on_receive(never), on_receive(values))).value)) {
      const auto held = weft::await(m.lock());
      ++count;
    }
  };
  std::jthread thread{[&] {
    while (std::get<1>(sync_wait(select(on_receive(never), on_receive(values))).value)) {
      const auto held = sync_wait(m.lock());
      ++count;
    }
  }};
  auto body = [&](scope& s) -> task<> {
    s.fork(sends);
    s.go(receives);
    co_return;
  };
  auto all = with_scope(body);
  sync_wait(weft::start_on(p.executor(), std::move(all)));
  thread.join();
  EXPECT_EQ(count, 4 * each);
}

// Selects on both sides of two channels, from several threads: nothing is lost, nothing comes twice.
TEST(select, meets_selects_from_many_threads) {
  channel<int> a{0}, b{1};
  weft::pool p{{.threads = 3}};
  const int each = test::rounds(2000);
  std::atomic<long> sent{0}, received{0};
  std::atomic<int> left{3};
  auto sends = [&](int from) -> task<> {
    for (int i = 0; i != each; ++i) {
      const int value = from * each + i;
      static_cast<void>(co_await select(on_send(a, value), on_send(b, value)));
      sent += value;
    }
    if (--left == 0) a.close(), b.close();
  };
  auto receives = [&]() -> task<> {
    for (;;) {
      const auto got = co_await select(on_receive(a), on_receive(b));
      const auto& value = got.index == 0 ? std::get<0>(got.value) : std::get<1>(got.value);
      if (!value) break;
      received += *value;
    }
    for (channel<int>* one : {&a, &b})  // one of them is closed and drained
      while (const auto value = co_await one->receive()) received += *value;
  };
  auto body = [&](scope& s) -> task<> {
    for (int i = 0; i != 3; ++i) s.fork_on(p.executor(), sends, i);
    for (int i = 0; i != 3; ++i) s.fork_on(p.executor(), receives);
    co_return;
  };
  sync_wait(with_scope(body));
  EXPECT_EQ(sent, received);
}

}  // namespace

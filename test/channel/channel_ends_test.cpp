// What only sends and what only receives, as views of a channel, and counted: the last of one kind closes it.
#include <weft/channel.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>
#include <weft/channel_ends.hpp>
#include <weft/combine.hpp>
#include <weft/fiber.hpp>
#include <weft/scope.hpp>
#include <weft/select.hpp>

#include "support/weft_test.hpp"

namespace {

using weft::as_result;
using weft::await;
using weft::channel;
using weft::channel_closed;
using weft::counted_receiver;
using weft::counted_sender;
using weft::make_channel;
using weft::on_receive;
using weft::on_send;
using weft::receiver;
using weft::scope;
using weft::select;
using weft::sender;
using weft::sync_wait;
using weft::task;
using weft::when_all;
using weft::with_scope;

// ---- what compiles ----------------------------------------------------------------------------------------------------------

static_assert(std::is_trivially_copyable_v<sender<int>> && std::is_trivially_copyable_v<receiver<int>>);
static_assert(std::is_nothrow_move_constructible_v<counted_sender<int>> &&
              std::is_copy_constructible_v<counted_sender<int>>);
static_assert(std::is_convertible_v<channel<int>&, sender<int>> && std::is_convertible_v<channel<int>&, receiver<int>>);
static_assert(std::is_convertible_v<counted_sender<int>, sender<int>>);
static_assert(!std::is_convertible_v<sender<int>, receiver<int>> && !std::is_convertible_v<receiver<int>, sender<int>>);
static_assert(!std::is_convertible_v<sender<int>, counted_sender<int>>, "what does not count can't");
static_assert(!std::is_convertible_v<counted_sender<int>, receiver<int>>);
template <class End>
concept sends = requires(End end) { end.send(1); };
template <class End>
concept receives = requires(End end) { end.receive(); };
template <class End>
concept closes = requires(End end) { end.close(); };
static_assert(sends<sender<int>> && !receives<sender<int>> && closes<sender<int>>);
static_assert(!sends<receiver<int>> && receives<receiver<int>> && !closes<receiver<int>>);
static_assert(sends<counted_sender<int>> && !receives<counted_sender<int>>);
static_assert(!sends<counted_receiver<int>> && receives<counted_receiver<int>>);

// ---- views ------------------------------------------------------------------------------------------------------------------

task<> count_to(sender<int> to, int end) {
  for (int i = 1; i <= end; ++i) co_await to.send(i);
  to.close();
}
task<int> sum_of(receiver<int> from) {
  int all = 0;
  while (const auto n = co_await from.receive()) all += *n;
  co_return all;
}

WEFT_TEST("channel_ends: a channel is given as what only sends, and what only receives") {
  channel<int> c{2};
  auto [nothing, sum] = co_await when_all(count_to(c, 10), sum_of(c));
  EXPECT_EQ(sum, 55);
  EXPECT_TRUE(receiver<int>{c}.is_closed());
}

WEFT_TEST("channel_ends: they do at once what needs no waiting, and tell what the channel tells") {
  channel<int> c{1};
  const sender<int> to{c};
  const receiver<int> from{c};
  EXPECT_TRUE(to && from && to.is_of(c) && from.is_of(c));
  EXPECT_FALSE(sender<int>{} || receiver<int>{});
  const int seven = 7;
  EXPECT_TRUE(to.try_send(seven));
  EXPECT_FALSE(to.try_send(8));
  EXPECT_EQ(to.size() + from.size(), 2u);
  EXPECT_EQ(from.capacity(), 1u);
  EXPECT_EQ(from.try_receive(), 7);
  EXPECT_FALSE(from.try_receive());
  EXPECT_EQ(from.stats().waiting, 0u);
  to.close();
  EXPECT_TRUE(from.is_closed());
  co_return;
}

WEFT_TEST("channel_ends: in a select, each way") {
  channel<int> c{0}, other{0};
  auto chooses = [&]() -> task<> {
    const receiver<int> from{c};
    const sender<int> to{other};
    auto receives_one = select(on_receive(from), on_send(to, 1));
    const auto got = co_await std::move(receives_one);
    EXPECT_EQ(got.index, 0u);
    EXPECT_EQ(std::get<0>(got.value), 5);
    auto sends_one = select(weft::on(from.receive()), weft::on(to.send(6)));
    EXPECT_EQ((co_await std::move(sends_one)).index, 1u);
  };
  auto other_side = [&]() -> task<> {
    co_await c.send(5);
    EXPECT_EQ(co_await other.receive(), 6);
  };
  co_await when_all(chooses(), other_side());
}

// ---- counted ----------------------------------------------------------------------------------------------------------------

task<> send_one(counted_sender<int> to, int value) { co_await to.send(value); }

WEFT_TEST("channel_ends: the last sender closes the channel, and what it has sent is received") {
  auto [to, from] = make_channel<int>(1);
  int sum = 0;
  auto body = [&](scope& s) -> task<> {
    for (int i = 1; i <= 4; ++i) s.fork(send_one(to, i));
    to.leave();
    EXPECT_FALSE(to);
    while (const auto n = co_await from.receive()) sum += *n;
  };
  co_await with_scope(body);
  EXPECT_EQ(sum, 10);
  EXPECT_TRUE(from.is_closed());
}

WEFT_TEST("channel_ends: a receiver that waits is told that the last sender has gone") {
  auto [to, from] = make_channel<int>(0);
  auto receives = [&]() -> task<> { EXPECT_FALSE((co_await from.receive()).has_value()); };
  auto leaves = [&]() -> task<> {
    counted_sender<int> copy{to}, moved{std::move(to)};
    EXPECT_FALSE(to);  // NOLINT(bugprone-use-after-move): what it is then
    copy = counted_sender<int>{};
    EXPECT_FALSE(from.is_closed());
    copy = std::move(moved);
    EXPECT_FALSE(from.is_closed());
    co_return;
  };
  co_await when_all(receives(), leaves());
  EXPECT_TRUE(from.is_closed());
}

WEFT_TEST("channel_ends: the last receiver closes the channel, and senders have their values back") {
  auto [to, from] = make_channel<std::unique_ptr<int>>(0);
  auto sends_in_vain = [&]() -> task<> {
    try {
      co_await to.send(std::make_unique<int>(7));
      ADD_FAILURE();
    } catch (channel_closed<std::unique_ptr<int>>& closed) {
      EXPECT_EQ(*closed.value(), 7);
    }
  };
  auto leaves = [&]() -> task<> {
    auto copy = from;
    from.leave();
    EXPECT_FALSE(copy.is_closed());
    co_return;  // the copy ends
  };
  co_await when_all(sends_in_vain(), leaves());
  EXPECT_TRUE(to.is_closed());
}

// Nobody could receive it, and others may wait for its end.
WEFT_TEST("channel_ends: what is there when the last receiver goes is destroyed") {
  auto [to, from] = make_channel<std::shared_ptr<int>>(weft::unbounded);
  const auto value = std::make_shared<int>(1);
  for (int i = 0; i != 20; ++i) EXPECT_TRUE(to.try_send(value));
  EXPECT_EQ(value.use_count(), 21);
  from.leave();
  EXPECT_EQ(value.use_count(), 1);
  EXPECT_FALSE(to.try_send(value));
  EXPECT_EQ(value.use_count(), 1);
  co_return;
}

WEFT_TEST("channel_ends: the channel lives as long as either end") {
  std::optional<counted_receiver<int>> kept;
  {
    auto [to, from] = make_channel<int>(4);
    EXPECT_TRUE(to.try_send(1) && to.try_send(2));
    kept = std::move(from);
  }
  EXPECT_EQ(co_await kept->receive(), 1);
  EXPECT_EQ(co_await kept->receive(), 2);
  EXPECT_FALSE((co_await kept->receive()).has_value());
}

WEFT_TEST("channel_ends: a view of a counted end does not count") {
  auto [to, from] = make_channel<int>(1);
  const sender<int> view{to};
  EXPECT_TRUE(view.is_of(to));
  to = counted_sender<int>{};
  EXPECT_TRUE(view.is_closed());
  EXPECT_FALSE(view.try_send(1));
  co_return;
}

WEFT_TEST("channel_ends: counted, in selects and in fibers") {
  auto [to, from] = make_channel<int>(0);
  int sum = 0;
  auto body = [&](scope& s) -> task<> {
    auto sends = [mine = std::move(to)]() mutable {
      for (int i = 1; i <= 3; ++i) {
        auto choice = select(on_send(mine, i));
        await(std::move(choice));
      }
      await(mine.send(4));
    };
    s.go(std::move(sends));
    for (;;) {
      auto choice = select(on_receive(from), weft::after(std::chrono::hours{1}));
      const auto got = co_await std::move(choice);
      EXPECT_EQ(got.index, 0u);
      const auto value = std::get<0>(got.value);
      if (!value) break;
      sum += *value;
    }
  };
  co_await with_scope(body);
  EXPECT_EQ(sum, 10);
}

WEFT_TEST("channel_ends: values of a counted receiver, to their end") {
  auto [to, from] = make_channel<int>(8);
  for (int i = 1; i <= 4; ++i) EXPECT_TRUE(to.try_send(i));
  to.leave();
  auto all = from.values();
  int sum = 0;
  while (const int* one = co_await all.next()) sum += *one;
  EXPECT_EQ(sum, 10);
}

// Ends that go on several threads at once: the channel is closed once, after all that was sent, and freed once.
TEST(channel_ends, come_and_go_on_many_threads) {
  for (int round = 0; round != test::rounds(100); ++round) {
    auto [to, from] = make_channel<int>(2);
    std::vector<std::jthread> threads;
    std::atomic<int> sum{0};
    for (int i = 0; i != 3; ++i) {
      threads.emplace_back([mine = to] {
        for (int k = 1; k <= 10; ++k) sync_wait(mine.send(k));
      });
      threads.emplace_back([&sum, mine = from] {
        for (int n : mine) sum += n;
      });
    }
    to.leave();
    from.leave();
    threads.clear();
    EXPECT_EQ(sum, 3 * 55);
  }
}

TEST(channel_ends, one_that_is_empty_is_not_used) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(static_cast<void>(sender<int>{}.try_send(1)), "weft: an end of no channel was used");
  EXPECT_DEATH(static_cast<void>(counted_receiver<int>{}.try_receive()), "weft: an end of no channel was used");
}

}  // namespace

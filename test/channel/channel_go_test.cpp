// What the Go project's tests of channels check, by behaviour, and channel_test and select_test do not: the table is in
// docs/measurements/0016-mutex-channels-select.md.
#include <weft/channel.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <random>
#include <thread>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>
#include <weft/pool.hpp>
#include <weft/scope.hpp>
#include <weft/select.hpp>
#include <weft/test.hpp>

#include "support/weft_test.hpp"

namespace {

using weft::as_result;
using weft::channel;
using weft::on_receive;
using weft::on_send;
using weft::otherwise;
using weft::scope;
using weft::select;
using weft::sync_wait;
using weft::task;
using weft::with_scope;

// Two selects lock many channels that they share, named in different orders: neither waits for the other, and what is sent
// comes once.
TEST(channel_go, two_selects_over_many_shared_channels) {
  constexpr std::size_t channels = 60;
  std::vector<std::unique_ptr<channel<int>>> all;
  for (std::size_t i = 0; i != channels; ++i) all.push_back(std::make_unique<channel<int>>(i % 2));
  const int each = test::rounds(2000);
  std::vector<std::atomic<int>> seen(static_cast<std::size_t>(2 * each));
  auto shuffled = [&](unsigned seed) {
    std::vector<channel<int>*> them;
    for (auto& one : all) them.push_back(one.get());
    std::shuffle(them.begin(), them.end(), std::mt19937{seed});
    return them;
  };
  auto sends = [&](int from) -> task<> {
    const auto order = shuffled(static_cast<unsigned>(from));
    for (int i = 0; i != each; ++i) {
      std::vector<weft::send_case<int>> cases;
      for (auto* one : order) cases.push_back(on_send(*one, from * each + i));
      static_cast<void>(co_await select(std::move(cases)));
    }
  };
  auto receives = [&](unsigned seed) -> task<> {
    const auto order = shuffled(seed);
    for (int i = 0; i != each; ++i) {
      std::vector<weft::receive_case<int>> cases;
      for (auto* one : order) cases.push_back(on_receive(*one));
      const auto got = co_await select(std::move(cases));
      ++seen[static_cast<std::size_t>(got.value.value())];
    }
  };
  weft::pool p{{.threads = 3}};
  auto body = [&](scope& s) -> task<> {
    for (int from : {0, 1}) s.fork_on(p.executor(), sends, from);
    for (unsigned seed : {10u, 11u}) s.fork_on(p.executor(), receives, seed);
    co_return;
  };
  sync_wait(with_scope(body));
  for (const auto& count : seen) EXPECT_EQ(count, 1);
  for (const auto& one : all) EXPECT_EQ(one->size() + one->stats().waiting, 0u);
}

// One select of hundreds of sends, against one of hundreds of receives, until half of the channels are closed, and then all.
TEST(channel_go, selects_of_hundreds_while_channels_close) {
  constexpr std::size_t channels = 300;
  const int most = test::rounds(500);
  std::vector<std::unique_ptr<channel<int>>> all;
  for (std::size_t i = 0; i != channels; ++i) all.push_back(std::make_unique<channel<int>>(i % 3));
  std::atomic<int> sent{0}, received{0}, refused{0};
  std::atomic<long> sum_sent{0}, sum_received{0};
  auto sends = [&](int from) -> task<> {
    std::vector<channel<int>*> open;
    for (auto& one : all) open.push_back(one.get());
    for (int value = from; !open.empty(); value += 2) {
      std::vector<weft::send_case<int>> cases;
      for (auto* one : open) cases.push_back(on_send(*one, int{value}));
      const auto how = co_await as_result(select(std::move(cases)));
      if (how) {
        ++sent, sum_sent += value;
        continue;
      }
      EXPECT_EQ(how.error(), weft::errc::closed);
      ++refused;
      std::erase_if(open, [](channel<int>* one) { return one->is_closed(); });
    }
  };
  auto receives = [&]() -> task<> {
    std::vector<channel<int>*> open;
    for (auto& one : all) open.push_back(one.get());
    while (!open.empty()) {
      std::vector<weft::receive_case<int>> cases;
      for (auto* one : open) cases.push_back(on_receive(*one));
      const auto got = co_await select(std::move(cases));
      if (got.value)
        ++received, sum_received += *got.value;
      else  // closed and drained
        open.erase(open.begin() + static_cast<std::ptrdiff_t>(got.index));
    }
  };
  auto closes = [&]() -> task<> {
    while (received < most) co_await weft::yield();
    for (std::size_t i = 0; i < channels; i += 2) all[i]->close();
    while (received < 2 * most) co_await weft::yield();
    for (auto& one : all) one->close();
  };
  weft::pool p{{.threads = 3}};
  auto body = [&](scope& s) -> task<> {
    for (int from : {0, 1}) s.fork_on(p.executor(), sends, from);
    for (int i = 0; i != 2; ++i) s.fork_on(p.executor(), receives);
    s.fork_on(p.executor(), closes);
    co_return;
  };
  sync_wait(with_scope(body));
  EXPECT_GE(sent, 2 * most);
  EXPECT_GE(refused, 2);  // each sender is told at least once
  EXPECT_EQ(sent, received);
  EXPECT_EQ(sum_sent, sum_received);
}

// Each hands on what the one before it gave, plus one, from the far end on: ten thousand wait when the first value is sent.
TEST(channel_go, a_chain_of_ten_thousand_tasks) {
  constexpr std::size_t length = 10'000;
  weft::pool p{{.threads = 2}};
  for (const bool on_pool : {false, true}) {
    std::vector<std::unique_ptr<channel<int>>> row;
    for (std::size_t i = 0; i != length + 1; ++i) row.push_back(std::make_unique<channel<int>>(std::size_t{0}));
    auto hands_on = [&](std::size_t i) -> task<> {
      const int value = (co_await row[i]->receive()).value();
      co_await row[i + 1]->send(value + 1);
    };
    int last = 0;
    auto body = [&](scope& s) -> task<> {
      for (std::size_t i = length; i-- != 0;)
        if (on_pool)
          s.fork_on(p.executor(), hands_on, i);
        else
          s.fork(hands_on, i);
      co_await row[0]->send(1);
      last = (co_await row[length]->receive()).value();
    };
    sync_wait(with_scope(body));
    EXPECT_EQ(last, 1 + static_cast<int>(length));
  }
}

// A value without size counts as any other: it takes room, makes a sender wait, and is drained.
struct nothing {};
static_assert(std::is_empty_v<nothing>);
WEFT_TEST("channel_go: elements of no size") {
  channel<nothing> some{2};
  EXPECT_TRUE(some.try_send(nothing{}));
  EXPECT_TRUE(some.try_send(nothing{}));
  EXPECT_FALSE(some.try_send(nothing{}));
  EXPECT_EQ(some.size(), 2u);
  bool sent = false;
  auto body = [&](scope& s) -> task<> {
    auto waits = [&]() -> task<> {
      co_await some.send(nothing{});
      sent = true;
    };
    s.fork(waits);
    while (some.stats().waiting == 0) co_await weft::yield();
    EXPECT_FALSE(sent);
    EXPECT_TRUE((co_await some.receive()).has_value());
  };
  co_await with_scope(body);
  EXPECT_TRUE(sent);
  some.close();
  EXPECT_TRUE(some.try_receive().has_value());
  EXPECT_TRUE(std::get<0>((co_await select(on_receive(some))).value).has_value());
  EXPECT_FALSE(some.try_receive().has_value());

  channel<nothing> meets{0}, grows{weft::unbounded};
  int got = 0;
  auto meeting = [&](scope& s) -> task<> {
    auto sends = [&]() -> task<> {
      for (int i = 0; i != 3; ++i) static_cast<void>(co_await select(on_send(meets, nothing{})));
      meets.close();
    };
    s.fork(sends);
    while (co_await meets.receive()) ++got;
  };
  co_await with_scope(meeting);
  EXPECT_EQ(got, 3);
  for (int i = 0; i != 100; ++i) co_await grows.send(nothing{});
  EXPECT_EQ(grows.size(), 100u);
}

// Of three that wait in one line the middle one goes, since another case of it fires: the two others are served in order, and
// so is who comes later.
WEFT_TEST("channel_go: a select leaves a line from the middle") {
  for (const std::size_t leaves : {0u, 1u, 2u}) {
    channel<int> line{0};
    channel<int> others[3]{channel<int>{0}, channel<int>{0}, channel<int>{0}};
    int got[4] = {};
    auto body = [&](scope& s) -> task<> {
      auto waits = [&](std::size_t i) -> task<> {
        const auto one = co_await select(on_receive(line), on_receive(others[i]));
        got[i] = std::visit([](const auto& value) { return value.value(); }, one.value);
      };
      for (std::size_t i = 0; i != 3; ++i) {
        s.fork(waits, i);
        while (line.stats().waiting != i + 1) co_await weft::yield();
      }
      EXPECT_TRUE(others[leaves].try_send(100));
      while (line.stats().waiting != 2) co_await weft::yield();
      auto comes_last = [&]() -> task<> { got[3] = (co_await line.receive()).value(); };
      s.fork(comes_last);
      while (line.stats().waiting != 3) co_await weft::yield();
      for (int value : {1, 2, 3}) EXPECT_TRUE(line.try_send(value));
      EXPECT_FALSE(line.try_send(4));
    };
    co_await with_scope(body);
    EXPECT_EQ(got[leaves], 100);
    int expected = 1;
    for (std::size_t i = 0; i != 4; ++i)
      if (i != leaves) {
        EXPECT_EQ(got[i], expected++);
      }
  }
}

// Who finds a channel closed finds what was sent before that: one that never waits sees nothing only as long as it is open,
// or when all has been received.
TEST(channel_go, one_that_never_waits_against_a_close) {
  for (int round = 0; round != test::rounds(300); ++round) {
    channel<int> c{1};
    std::jthread closes{[&] {
      EXPECT_TRUE(c.try_send(7));
      c.close();
    }};
    std::optional<int> got;
    for (bool done = false; !done; std::this_thread::yield()) {
      const bool was_closed = c.is_closed();  // then all has been sent
      if (round % 2 == 0) {
        got = c.try_receive();
        done = got.has_value() || was_closed;
      } else {
        auto look = [&]() -> task<> {
          const auto one = co_await select(on_receive(c), otherwise);
          if (one.index == 0) got = std::get<0>(one.value), done = true;  // a value, or closed and drained
        };
        sync_wait(look());
      }
    }
    ASSERT_EQ(got, 7) << "round " << round;
    closes.join();
    EXPECT_FALSE(c.try_receive().has_value());
  }
}

}  // namespace

// token_bucket: how many tokens come by when, in which order they are given, and that a stop loses none.
#include <weft/token_bucket.hpp>

#include <atomic>
#include <chrono>
#include <limits>
#include <string>
#include <thread>
#include <utility>
#include <vector>
#include <weft/combine.hpp>
#include <weft/fiber.hpp>
#include <weft/pool.hpp>
#include <weft/scope.hpp>
#include <weft/sync.hpp>
#include <weft/timed.hpp>
#include <weft/with.hpp>

#include "support/sweep.hpp"

namespace {

using namespace test::in_sweeps;
using weft::as_result;
using weft::scope;
using weft::sleep_for;
using weft::task;
using weft::token_bucket;
using weft::with_scope;
using weft::test::elapsed;

// The book says it.
static_assert(sizeof(token_bucket) <= 112);

// By the virtual clock.
[[maybe_unused]] const bool runs_in_no_time = [] {
  test::run_body = [](task<> body) {
    auto all = [&body] { return std::move(body); };
    weft::test::run(all);
  };
  return true;
}();

WEFT_TEST("token_bucket: a burst at once, then one token after the other") {
  token_bucket b{{.rate = 10, .burst = 3}};
  EXPECT_EQ(b.available(), 3U);
  for (int i = 0; i != 3; ++i) co_await b.take();
  EXPECT_EQ(elapsed(), 0ms);
  for (int i = 1; i != 8; ++i) {
    co_await b.take();
    EXPECT_EQ(elapsed(), 100ms * i);
  }
  EXPECT_FALSE(b.try_take());
  co_await sleep_for(99ms);
  EXPECT_FALSE(b.try_take());
  co_await sleep_for(1ms);
  EXPECT_TRUE(b.try_take());
  co_await sleep_for(1h);
  EXPECT_EQ(b.available(), 3U);  // no more than it holds
}

WEFT_TEST("token_bucket: no rate drifts, and none is too large or small") {
  token_bucket thirds{{.rate = 3}};
  co_await thirds.take();
  for (int i = 0; i != 3000; ++i) co_await thirds.take();
  EXPECT_EQ(elapsed(), 1000s);

  token_bucket daily{{.rate = 1'000'000, .per = 24h, .burst = 500'000}};
  co_await daily.take(500'000);
  const auto before = elapsed();
  co_await daily.take(500'000);
  EXPECT_EQ(elapsed() - before, 12h);

  constexpr std::size_t most = std::numeric_limits<std::size_t>::max();
  token_bucket huge{{.rate = most, .per = weft::clock::duration::max(), .burst = most}};
  co_await huge.take(most);
  EXPECT_EQ(huge.available(), 0U);
  co_await sleep_for(1s);
  EXPECT_EQ(huge.available() / 2, 1'000'000'000U);  // and what is left of a token
  token_bucket never{{.rate = 1, .per = weft::clock::duration::max(), .burst = most}};
  co_await never.take(most);
  EXPECT_TRUE((co_await as_result(weft::timeout(1h, never.take(most)))).error() == weft::errc::timed_out);
}

WEFT_TEST("token_bucket: who wants many is not overtaken") {
  token_bucket b{{.rate = 1, .burst = 5}};
  std::vector<std::string> done;
  auto one = [&](std::string name, std::size_t count) -> task<> {
    co_await b.take(count);
    done.push_back(name + std::to_string(elapsed() / 1s));
  };
  co_await with_scope([&](scope& s) -> task<> {
    s.fork(one, "a", 4);
    s.fork(one, "many", 5);   // first in line, at 4 s
    s.fork(one, "few", 1);    // 5 s
    s.fork(one, "again", 3);  // 8 s
    EXPECT_FALSE(b.try_take());
    EXPECT_EQ(b.available(), 1U);
    EXPECT_EQ(b.stats().waiting, 2U);
    co_return;
  });
  EXPECT_EQ(done, (std::vector<std::string>{"a0", "many4", "few5", "again8"}));
}

WEFT_TEST("token_bucket: one that is stopped gives its place to those behind it") {
  token_bucket b{{.rate = 1, .burst = 5}};
  EXPECT_TRUE(b.try_take(3));
  std::vector<int> done;
  auto one = [&](int name, std::size_t count) -> task<> {
    co_await b.take(count);
    done.push_back(name);
    EXPECT_EQ(elapsed(), name == 4 ? 2s : 1s);
  };
  co_await with_scope([&](scope& s) -> task<> {
    auto first = s.fork(one, 1, 5);
    s.fork(one, 2, 1);  // as soon as the first is gone, both at once
    s.fork(one, 3, 2);
    auto in_line = s.fork(one, 5, 4);
    s.fork(one, 4, 1);
    co_await sleep_for(1s);
    in_line.request_stop();
    first.request_stop();
  });
  EXPECT_EQ(done, (std::vector<int>{2, 3, 4}));
  EXPECT_EQ(elapsed(), 2s);
  EXPECT_EQ(b.available(), 0U);
}

WEFT_TEST("token_bucket: a task that was told to stop takes nothing, and what was given wins") {
  token_bucket b{{.rate = 1, .burst = 2}};
  weft::stop_source stops;
  stops.request_stop();
  auto takes = [&] { return b.take(); };
  EXPECT_TRUE((co_await as_result(weft::with_stop(stops.token(), takes))).is_stopped());
  EXPECT_EQ(b.available(), 2U);
  EXPECT_TRUE((co_await as_result(weft::timeout(500ms, b.take(2)))).has_value());
  EXPECT_TRUE((co_await as_result(weft::timeout(500ms, b.take()))).error() == weft::errc::timed_out);
  co_await sleep_for(500ms);
  EXPECT_TRUE(b.try_take()) << "the one that had no time left has taken a token";
}

WEFT_TEST("token_bucket: more than it holds is refused") {
  token_bucket b{{.rate = 1, .burst = 3}};
  std::string said;
  try {
    co_await b.take(4);
  } catch (const weft::error& e) {
    EXPECT_TRUE(e.code() == std::errc::invalid_argument);
    said = e.what();
  }
  EXPECT_NE(said.find("4 tokens of a bucket that holds 3"), std::string::npos) << said;
  EXPECT_THROW(static_cast<void>(b.try_take(4)), weft::error);
  EXPECT_EQ(b.available(), 3U);
}

TEST(token_bucket_death, refuses_what_makes_no_sense) {
  EXPECT_DEATH((token_bucket{{.rate = 0}}), "a rate of 0");
  EXPECT_DEATH((token_bucket{{.rate = 1, .per = 0s}}), "a period that is no time");
  EXPECT_DEATH((token_bucket{{.rate = 1, .burst = 0}}), "a burst of 0");
}

// Nothing is lost, whatever is stopped: what is left is what there was and has come, without what was taken. The bucket is
// never full again, as that would take longer than the scenario does.
template <class By>
struct takes {
  token_bucket b{{.rate = 1, .per = 1h, .burst = 6}};
  std::size_t taken = 0, left = 0, come = 0;

  struct accounts {
    takes& of;
    ~accounts() {
      of.left = of.b.available();
      of.come = static_cast<std::size_t>(elapsed() / 1h);
    }
  };
  part<By> one(std::size_t count) {
    co_await b.take(count);
    taken += count;
  }
  part<By> run() {
    const accounts at_end{*this};
    if (b.try_take(5)) taken += 5;
    co_await together(one(2), one(1), one(1), one(1));
  }
  void check() const { require(taken == 0 || left + taken == 6 + come, "a token was lost, or came from nowhere"); }
};
TEST(sweep, token_bucket) { sweep_both<takes>("token_bucket::take"); }

// Of several threads, tasks and fibers on the real clock: as many are taken as are wanted, no earlier than they have come.
TEST(token_bucket, of_tasks_fibers_and_threads_with_stops) {
  constexpr std::size_t burst = 8;
  const auto times = static_cast<std::size_t>(test::rounds(400));
  token_bucket b{{.rate = 1'000'000, .burst = burst}};
  std::atomic<std::size_t> taken{0};
  const auto begin = std::chrono::steady_clock::now();
  auto takes = [&](std::size_t count) -> task<> {
    co_await b.take(count);
    taken.fetch_add(count);
  };
  {
    const weft::pool pool{{.threads = 2}};
    std::vector<std::jthread> threads;
    for (std::size_t who : {1, 2})
      threads.emplace_back([&, who] {
        for (std::size_t i = 0; i != times; ++i) weft::sync_wait(takes(who));
      });
    auto some = [&](std::size_t who) -> task<> {
      for (std::size_t i = 0; i != times; ++i) co_await takes(who);
    };
    weft::sync_wait(with_scope({.executor = &pool.executor()}, [&](scope& s) -> task<> {
      s.go([&] {
        for (std::size_t i = 0; i != times; ++i) weft::await(takes(3));
      });
      for (std::size_t who : {1, 4}) s.fork(some, who);
      for (std::size_t i = 0; i != times; ++i) {
        auto perhaps = s.fork(takes, 5);
        co_await takes(1);
        perhaps.request_stop();
      }
    }));
  }
  const std::chrono::nanoseconds took = std::chrono::steady_clock::now() - begin;
  EXPECT_GE(taken.load(), times * (1 + 2 + 3 + 1 + 4 + 1));
  EXPECT_LE(taken.load(), burst + static_cast<std::size_t>(took.count() / 1000) + 1);
}

}  // namespace

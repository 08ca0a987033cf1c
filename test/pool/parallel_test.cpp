#include <weft/parallel.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <ranges>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>
#include <weft/pool.hpp>
#include <weft/stop.hpp>
#include <weft/with.hpp>

#include "support/weft_test.hpp"

namespace {

using weft::as_result;
using weft::pool;
using weft::start_on;
using weft::task;

std::vector<int> numbers(int n) {
  std::vector<int> all(static_cast<std::size_t>(n));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

// ---- for_each -----------------------------------------------------------------------------------------------------------

WEFT_TEST("for_each: each element once, in order where one job runs at a time") {
  const std::vector<int> from = numbers(1000);
  std::vector<int> seen;
  auto note = [&](const int& n) { seen.push_back(n); };
  co_await weft::for_each(from, note);
  EXPECT_EQ(seen, from);
  const std::vector<int> empty;
  co_await weft::for_each(empty, note);
  EXPECT_EQ(seen.size(), 1000u);
}

WEFT_TEST("for_each: on a pool, each element once, whatever the grain") {
  const pool workers{{.threads = 4}};
  for (const std::size_t grain : {std::size_t{0}, std::size_t{1}, std::size_t{7}, std::size_t{100'000}}) {
    std::vector<int> count(static_cast<std::size_t>(test::rounds(20'000)) + 3);  // plain: each element has one caller
    auto up = [](int& n) { ++n; };
    co_await start_on(workers.executor(), weft::for_each({.grain = grain}, count, up));
    EXPECT_EQ(std::ranges::count(count, 1), std::ssize(count)) << grain;
  }
}

WEFT_TEST("for_each: several at once") {
  const pool workers{{.threads = 3}};
  std::atomic<int> inside{0};
  auto meet = [&](int) {
    ++inside;
    test::until([&] { return inside >= 3; });  // all three are here
  };
  co_await start_on(workers.executor(), weft::for_each({.grain = 1}, std::views::iota(0, 3), meet));
  EXPECT_EQ(inside, 3);
}

WEFT_TEST("for_each: a function that returns a task is awaited, and may wait") {
  const pool workers{{.threads = 2}};
  std::atomic<int> sum{0};
  auto add = [&](int n) -> task<> {
    co_await weft::yield();
    sum += n;
  };
  co_await start_on(workers.executor(), weft::for_each(std::views::iota(0, 200), add));
  EXPECT_EQ(sum, 199 * 100);
}

WEFT_TEST("for_each: an rvalue is moved into the frame") {
  int sum = 0;
  auto add = [&](int n) { sum += n; };
  std::vector<int> from = numbers(10);
  auto work = weft::for_each(std::move(from), add);
  from.assign(10, 1000);
  co_await std::move(work);
  EXPECT_EQ(sum, 45);
}

WEFT_TEST("for_each: the first failure ends it, and what has not begun is left out") {
  for (const unsigned threads : {1u, 4u}) {
    const pool workers{{.threads = threads}};
    std::atomic<int> called{0};
    auto fails = [&](int n) {
      ++called;
      if (n == 10) throw std::runtime_error{"the tenth"};
    };
    auto work = start_on(workers.executor(), weft::for_each({.grain = 1}, std::views::iota(0, 100'000), fails));
    const auto ended = co_await as_result(std::move(work));
    bool told = false;
    try {
      std::rethrow_exception(ended.exception());
    } catch (const std::runtime_error& thrown) {
      told = std::string{thrown.what()} == "the tenth";
    }
    EXPECT_TRUE(told);
    if (threads == 1) {
      EXPECT_EQ(called, 11);
    }
  }
}

WEFT_TEST("for_each: a stop ends it between two pieces") {
  for (const unsigned threads : {1u, 3u}) {
    const pool workers{{.threads = threads}};
    weft::stop_source source;
    std::atomic<int> called{0};
    std::atomic<bool> told{false};
    auto stops = [&](int) {
      const int count = ++called;
      if (count == 10) {
        source.request_stop();
        told = true;
      } else if (count > 10) {
        test::until([&] { return told.load(); });  // however late the tenth is
      }
    };
    auto work = [&]() -> task<> {
      co_await start_on(workers.executor(), weft::for_each({.grain = 1}, std::views::iota(0, 100'000), stops));
    };
    const auto ended = co_await as_result(weft::with_stop(source.token(), work));
    EXPECT_TRUE(ended.is_stopped());
    EXPECT_LT(called, 100'000);
  }
}

// Pieces that have not begun see the stop, and not the failure.
WEFT_TEST("for_each: a failure comes out, also where a stop from outside cuts other pieces short") {
  for (const unsigned threads : {1u, 3u}) {
    const pool workers{{.threads = threads}};
    weft::stop_source source;
    std::atomic<int> called{0};
    std::atomic<bool> told{false};
    auto stops_and_fails = [&](int) {
      const int count = ++called;
      if (count > 10) test::until([&] { return told.load(); });
      if (count != 10) return;
      source.request_stop();
      told = true;
      throw std::runtime_error{"the tenth"};
    };
    auto work = [&]() -> task<> {
      co_await start_on(workers.executor(), weft::for_each({.grain = 1}, std::views::iota(0, 10'000), stops_and_fails));
    };
    const auto ended = co_await as_result(weft::with_stop(source.token(), work));
    EXPECT_FALSE(ended.is_stopped());
    EXPECT_THROW(std::rethrow_exception(ended.exception()), std::runtime_error);
    EXPECT_LT(called, 10'000);
  }
}

// The same where the body waits, and without executor.
WEFT_TEST("for_each: a failure after a wait comes out beside a stop") {
  weft::stop_source source;
  auto stops_and_fails = [&](int n) -> task<> {
    co_await weft::yield();
    if (n != 3) co_return;
    source.request_stop();
    throw std::runtime_error{"the third"};
  };
  auto work = [&]() -> task<> { co_await weft::for_each({.grain = 1}, std::views::iota(0, 16), stops_and_fails); };
  const auto ended = co_await as_result(weft::with_stop(source.token(), work));
  EXPECT_FALSE(ended.is_stopped());
  EXPECT_THROW(std::rethrow_exception(ended.exception()), std::runtime_error);
}

// ---- reduce -------------------------------------------------------------------------------------------------------------

WEFT_TEST("reduce: sums up, on any executor, whatever the grain") {
  const pool workers{{.threads = 4}};
  const std::vector<int> from = numbers(5001);
  EXPECT_EQ(co_await weft::reduce(from, 7L), 5000L * 5001 / 2 + 7);
  const std::vector<int> empty;
  EXPECT_EQ(co_await weft::reduce(empty, 7L), 7L);
  const auto square = [](int n) { return static_cast<long>(n) * n; };
  for (const std::size_t grain : {std::size_t{0}, std::size_t{1}, std::size_t{100}}) {
    const long sum =
        co_await start_on(workers.executor(), weft::reduce({.grain = grain}, from, 0L, std::plus<>{}, square));
    EXPECT_EQ(sum, 5000L * 5001 * 10001 / 6) << grain;
  }
}

WEFT_TEST("reduce: combines what `initial` is, whatever the elements are") {
  const std::vector<int> from = numbers(1001);
  const auto larger = [](auto a, auto b) { return std::max(a, b); };
  EXPECT_EQ(co_await weft::reduce(from, 7L, larger), 1000L);
  const std::vector<long> longs(from.begin(), from.end());
  const auto takes_over = [](long&& a, long&& b) { return a + b; };
  EXPECT_EQ(co_await weft::reduce(longs, 0L, takes_over), 500'500L);
}

// Strings: to append is associative, and nothing else.
WEFT_TEST("reduce: keeps the order of the range") {
  const pool workers{{.threads = 4}};
  const auto text = [](int n) { return std::to_string(n) + ' '; };
  std::string expected = "> ";
  for (int i = 0; i != 300; ++i) expected += text(i);
  const std::plus<> append;
  const std::string start = "> ";
  for (int round = 0; round != 20; ++round) {
    auto work = weft::reduce({.grain = 3}, std::views::iota(0, 300), start, append, text);
    EXPECT_EQ(co_await start_on(workers.executor(), std::move(work)), expected);
  }
}

WEFT_TEST("reduce: what is thrown first comes out, from an element or from combining") {
  const pool workers{{.threads = 3}};
  const auto element = [](int n) {
    if (n == 500) throw std::runtime_error{"an element"};
    return n;
  };
  auto work =
      start_on(workers.executor(), weft::reduce({.grain = 10}, std::views::iota(0, 10'000), 0, std::plus<>{}, element));
  const auto ended = co_await as_result(std::move(work));
  EXPECT_THROW(std::rethrow_exception(ended.exception()), std::runtime_error);

  const auto combining = [](int a, int b) -> int {
    if (a + b > 5000) throw std::overflow_error{"too much"};
    return a + b;
  };
  auto other = start_on(workers.executor(), weft::reduce(std::views::iota(0, 1000), 0, combining));
  const auto failed = co_await as_result(std::move(other));
  EXPECT_THROW(std::rethrow_exception(failed.exception()), std::overflow_error);
}

WEFT_TEST("reduce: a stop ends it") {
  const pool workers{{.threads = 2}};
  weft::stop_source source;
  std::atomic<int> called{0};
  std::atomic<bool> told{false};
  const auto stops = [&](int n) {
    const int count = ++called;
    if (count == 20) {
      source.request_stop();
      told = true;
    } else if (count > 20) {
      test::until([&] { return told.load(); });
    }
    return n;
  };
  auto work = [&]() -> task<int> {
    co_return co_await start_on(workers.executor(),
                                weft::reduce({.grain = 1}, std::views::iota(0, 1'000'000), 0, std::plus<>{}, stops));
  };
  const auto ended = co_await as_result(weft::with_stop(source.token(), work));
  EXPECT_TRUE(ended.is_stopped());
}

WEFT_TEST("reduce: a failure comes out, also where a stop from outside cuts other pieces short") {
  for (const unsigned threads : {1u, 3u}) {
    const pool workers{{.threads = threads}};
    weft::stop_source source;
    const auto stops_and_fails = [&](int n) {
      if (n != 20) return n;
      source.request_stop();
      throw std::runtime_error{"the twentieth"};
    };
    auto work = [&]() -> task<int> {
      co_return co_await start_on(workers.executor(), weft::reduce({.grain = 1}, std::views::iota(0, 10'000), 0,
                                                                   std::plus<>{}, stops_and_fails));
    };
    const auto ended = co_await as_result(weft::with_stop(source.token(), work));
    EXPECT_FALSE(ended.is_stopped());
    EXPECT_THROW(std::rethrow_exception(ended.exception()), std::runtime_error);
  }
}

// ---- without a pool -------------------------------------------------------------------------------------------------------

class without_a_pool : public testing::Test {
 protected:
  without_a_pool() {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    unsetenv("WEFT_CHAOS");  // of which a program says that it has it
  }
};

TEST_F(without_a_pool, is_said_once) {
  const auto loop = [](const weft::pool* on) {
    const std::vector<int> from = numbers(2000);
    auto nothing = [](const int&) {};
    for (int i = 0; i != 3; ++i)
      if (on != nullptr)
        weft::sync_wait(start_on(on->executor(), weft::for_each(from, nothing)));
      else
        weft::sync_wait(weft::for_each(from, nothing));
    std::fputs("end", stderr);
    std::_Exit(0);
  };
  EXPECT_EXIT(loop(nullptr), testing::ExitedWithCode(0), "^weft: a for_each or reduce runs where[^\n]*\nend$");
  const auto on_a_pool = [&] {
    const pool workers{{.threads = 2}};
    loop(&workers);
  };
  EXPECT_EXIT(on_a_pool(), testing::ExitedWithCode(0), "^end$");
}

}  // namespace

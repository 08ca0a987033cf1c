// Why work was stopped, whoever stopped it: why_stopped() in what is stopped.
#include <weft/async_generator.hpp>
#include <weft/combine.hpp>
#include <weft/fiber.hpp>
#include <weft/future.hpp>
#include <weft/on_scope_exit.hpp>
#include <weft/pool.hpp>
#include <weft/scope.hpp>
#include <weft/shared_task.hpp>
#include <weft/task.hpp>
#include <weft/timed.hpp>
#include <weft/with.hpp>

#include <chrono>
#include <source_location>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <vector>

#include "support/causes.hpp"
#include "support/weft_test.hpp"

namespace {

using namespace std::chrono_literals;
using test::chain, test::is_only, test::is_of_executor, test::line_here, test::yields;
using weft::as_result;
using weft::scope;
using weft::stop_cause;
using weft::task;
using weft::when_all;
using weft::when_any;
using weft::with_scope;

// Waits for ever, and notes why it was stopped.
task<> waits(chain& why) {
  test::gate never;
  struct leaves {
    chain& why;
    ~leaves() { why = weft::why_stopped(); }
  } const here{why};
  co_await never;
}

constexpr std::string_view another_was_first = "another part of the when_any was first";
constexpr std::string_view enough_have_come = "enough other parts of the when_some have come, or one has failed";
constexpr std::string_view time_is_over = "the time of the timeout() is over";

task<> done() { co_return; }

WEFT_TEST("causes: what a when_any has not chosen has its line, also inside of other calls") {
  chain why;
  unsigned line = line_here() + 1;
  co_await when_any(waits(why), yields());
  EXPECT_TRUE(is_only(why, another_was_first, line)) << "the other one ends when all have begun";

  line = line_here() + 1;
  co_await when_any(waits(why), done());
  EXPECT_TRUE(is_only(why, another_was_first, line)) << "the other one ends before all have begun";

  line = line_here() + 1;
  auto inside = as_result(when_any(waits(why), yields()));
  EXPECT_TRUE((co_await std::move(inside)).has_value());
  EXPECT_TRUE(is_only(why, another_was_first, line));

  line = line_here() + 1;
  auto below = when_all(when_any(yields(), waits(why)), yields());
  co_await std::move(below);
  EXPECT_TRUE(is_only(why, another_was_first, line));
}

WEFT_TEST("causes: a when_any of up to six, and of a range, knows its line") {
  chain why;
  const auto never = [] { return weft::sleep_for(1h); };
  unsigned line = line_here() + 1;
  co_await when_any(waits(why), never(), yields());
  EXPECT_TRUE(is_only(why, another_was_first, line));
  line = line_here() + 1;
  co_await when_any(waits(why), never(), never(), yields());
  EXPECT_TRUE(is_only(why, another_was_first, line));
  line = line_here() + 1;
  co_await when_any(waits(why), never(), never(), never(), yields());
  EXPECT_TRUE(is_only(why, another_was_first, line));
  line = line_here() + 1;
  co_await when_any(waits(why), never(), never(), never(), never(), yields());
  EXPECT_TRUE(is_only(why, another_was_first, line));
  co_await when_any(waits(why), never(), never(), never(), never(), never(), yields());
  EXPECT_EQ(why.size(), 1U);
  if (!why.empty()) {
    EXPECT_STREQ(why[0].reason, another_was_first.data());
    EXPECT_EQ(why[0].where.line(), 0U) << "there is no place for it behind seven";
  }

  std::vector<task<>> two;
  two.push_back(waits(why));
  two.push_back(yields());
  line = line_here() + 1;
  auto range = when_any(std::move(two));
  co_await std::move(range);
  EXPECT_TRUE(is_only(why, another_was_first, line));
}

WEFT_TEST("causes: what a when_some does not need has its line, in both its forms") {
  chain why;
  const auto two = [&] {
    std::vector<task<>> all;
    all.push_back(waits(why));
    all.push_back(yields());
    return all;
  };
  unsigned line = line_here() + 1;
  auto some = weft::when_some(1, two());
  co_await std::move(some);
  EXPECT_TRUE(is_only(why, enough_have_come, line));
  line = line_here() + 1;
  auto piped = two() | weft::when(1);
  co_await std::move(piped);
  EXPECT_TRUE(is_only(why, enough_have_come, line));
}

WEFT_TEST("causes: what a timeout ends has its line, in both its forms") {
  chain why;
  unsigned line = line_here() + 1;
  auto limited = as_result(weft::timeout(1ms, waits(why)));
  EXPECT_FALSE((co_await std::move(limited)).is_stopped());
  EXPECT_TRUE(is_only(why, time_is_over, line));
  line = line_here() + 1;
  auto piped = as_result(waits(why) | weft::timeout(1ms));
  EXPECT_FALSE((co_await std::move(piped)).is_stopped());
  EXPECT_TRUE(is_only(why, time_is_over, line));
  line = line_here() + 1;
  auto none = as_result(weft::timeout(0ms, waits(why)));
  EXPECT_FALSE((co_await std::move(none)).is_stopped());
  EXPECT_TRUE(is_only(why, time_is_over, line));
}

WEFT_TEST("causes: a race inside of one that is lost tells both lines, the nearest first") {
  chain why;
  const auto inner = [&]() -> task<> { co_await weft::timeout(1h, waits(why)); };
  const unsigned line = line_here() + 1;
  co_await when_any(inner(), yields());
  EXPECT_TRUE(is_only(why, another_was_first, line)) << "its own time is not over";
}

WEFT_TEST("causes: who was told before its group decides has the older cause alone") {
  chain why;
  weft::stop_source source;
  const auto race = [&]() -> task<> {
    const auto stops_all = [&]() -> task<> {
      co_await weft::yield();
      source.request_stop({.reason = "from outside"});
    };
    co_await when_any(waits(why), stops_all());
  };
  const auto how = co_await as_result(weft::with_stop(source.token(), race));
  EXPECT_TRUE(how.has_value());
  EXPECT_EQ(why.size(), 1U);
  if (!why.empty()) {
    EXPECT_STREQ(why[0].reason, "from outside");
  }
}

WEFT_TEST("causes: a source of a merge that is not wanted any more says so") {
  chain why;
  const auto never = [&]() -> weft::async_generator<int> {
    co_await waits(why);
    co_yield 1;
  };
  const auto one = []() -> weft::async_generator<int> {
    co_await weft::yield();
    co_yield 1;
  };
  co_await (weft::merge(never(), one()) | weft::for_each([](int) { return false; }));
  EXPECT_EQ(why.size(), 1U);
  if (!why.empty()) {
    EXPECT_STREQ(why[0].reason, "another source of the merge has failed, or the function of its values wants no more");
  }
}

WEFT_TEST("causes: scopes below one that is not chosen tell both") {
  chain why;
  auto body = [&](scope& s) -> task<> {
    s.fork(waits(why));
    co_return;
  };
  const int line = __LINE__ + 1;
  co_await when_any(with_scope(body), yields());
  EXPECT_EQ(why.size(), 2U);
  if (why.size() != 2) co_return;
  EXPECT_STREQ(why[0].reason, "the task that awaits the scope was stopped");
  EXPECT_EQ(why[0].where.line(), static_cast<unsigned>(line));
  EXPECT_STREQ(why[1].reason, another_was_first.data());
  EXPECT_EQ(why[1].where.line(), static_cast<unsigned>(line));
}

WEFT_TEST("causes: a join in what is stopped adds none of its own") {
  chain why;
  auto body = [&](scope& s) -> task<> {
    auto pair = [&]() -> task<> { co_await when_all(waits(why), weft::yield()); };
    s.fork(pair);
    co_await weft::yield();
    co_await weft::yield();
    s.request_stop({.reason = "enough"});
  };
  co_await with_scope(body);
  EXPECT_EQ(why.size(), 1U);
  if (!why.empty()) {
    EXPECT_STREQ(why[0].reason, "enough");
  }
}

WEFT_TEST("causes: a deadline says which line has set it, also far below") {
  chain why;
  auto middle = [&]() -> task<> {
    auto body = [&](scope& s) -> task<> {
      s.fork(waits(why));
      co_return;
    };
    co_await with_scope(body);
  };
  const int line = __LINE__ + 1;
  auto late = as_result(weft::with_deadline(1ms, middle));
  const auto how = co_await std::move(late);
  EXPECT_TRUE(how.is_stopped());
  EXPECT_EQ(why.size(), 2U);
  if (why.size() != 2) co_return;
  EXPECT_STREQ(why[1].reason, "the deadline of the scope has passed");
  EXPECT_EQ(why[1].where.line(), static_cast<unsigned>(line));
  EXPECT_STREQ(why[1].where.file_name(), __FILE__);
}

WEFT_TEST("causes: what runs on is stopped by nobody") {
  auto asks = []() -> task<> {
    co_await weft::yield();
    EXPECT_TRUE(weft::why_stopped().empty());
  };
  co_await when_all(asks(), asks());
  co_await weft::timeout(1h, asks());
}

TEST(causes, a_pool_that_is_cancelled_says_so) {
  chain why;
  weft::pool workers{{.threads = 1}};
  test::gate begun;
  auto notes = [&]() -> task<> {
    struct leaves {
      chain& why;
      ~leaves() { why = weft::why_stopped(); }
    } const here{why};
    begun.open();
    for (;;) co_await weft::yield();
  };
  auto work = weft::as_future(workers.executor(), notes());
  weft::sync_wait(begun.pass());
  workers.shutdown(weft::pool_shutdown::cancel);
  EXPECT_THROW(work.get(), weft::stopped);
  ASSERT_EQ(why.size(), 1U);
  EXPECT_TRUE(is_of_executor(why[0]));
}

WEFT_TEST("causes: a fiber that catches its stop can ask") {
  chain why;
  auto body = [&](scope& s) -> task<> {
    test::gate never;
    auto waits_in_fiber = [&] {
      try {
        weft::await(never.pass());
      } catch (const weft::stopped&) {
        why = weft::why_stopped();
        throw;
      }
    };
    auto fiber = s.go(waits_in_fiber);
    co_await weft::yield();
    fiber.request_stop({.reason = "by its handle"});
    EXPECT_TRUE((co_await as_result(std::move(fiber))).is_stopped());
  };
  co_await with_scope(body);
  EXPECT_EQ(why.size(), 1U);
  if (!why.empty()) {
    EXPECT_STREQ(why[0].reason, "by its handle");
  }
}

}  // namespace

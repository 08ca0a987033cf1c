// Why work was stopped, whoever stopped it: why_stopped() in what is stopped.
#include <weft/combine.hpp>
#include <weft/fiber.hpp>
#include <weft/future.hpp>
#include <weft/pool.hpp>
#include <weft/scope.hpp>
#include <weft/task.hpp>
#include <weft/timed.hpp>
#include <weft/with.hpp>

#include <chrono>
#include <source_location>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <vector>

#include "support/weft_test.hpp"

namespace {

using namespace std::chrono_literals;
using weft::as_result;
using weft::scope;
using weft::stop_cause;
using weft::task;
using weft::when_all;
using weft::when_any;
using weft::with_scope;

using chain = std::vector<stop_cause>;

constexpr std::string_view of_nobody = "what awaits the task needs it no more";

// Waits for ever, and notes why it was stopped.
task<> waits(chain& why) {
  test::gate never;
  struct leaves {
    chain& why;
    ~leaves() { why = weft::why_stopped(); }
  } const here{why};
  co_await never;
}

bool is_of_nobody(const stop_cause& one) {
  return std::string_view{one.reason}.starts_with(of_nobody) && one.where.line() == 0 && one.thrown_in == nullptr;
}

WEFT_TEST("causes: what a when_any has not chosen says so") {
  chain why;
  auto first = []() -> task<> { co_return co_await weft::yield(); };
  co_await when_any(waits(why), first());
  EXPECT_EQ(why.size(), 1U);
  if (!why.empty()) {
    EXPECT_TRUE(is_of_nobody(why[0]));
  }
}

WEFT_TEST("causes: what a timeout ends says so") {
  chain why;
  const auto how = co_await as_result(weft::timeout(1ms, waits(why)));
  EXPECT_FALSE(how.is_stopped());
  EXPECT_EQ(why.size(), 1U);
  if (!why.empty()) {
    EXPECT_TRUE(is_of_nobody(why[0]));
  }
}

WEFT_TEST("causes: scopes below one that is not chosen tell both") {
  chain why;
  auto body = [&](scope& s) -> task<> {
    s.fork(waits(why));
    co_return;
  };
  auto first = []() -> task<> { co_return co_await weft::yield(); };
  const int line = __LINE__ + 1;
  co_await when_any(with_scope(body), first());
  EXPECT_EQ(why.size(), 2U);
  if (why.size() != 2) co_return;
  EXPECT_STREQ(why[0].reason, "the task that awaits the scope was stopped");
  EXPECT_EQ(why[0].where.line(), static_cast<unsigned>(line));
  EXPECT_TRUE(is_of_nobody(why[1]));
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
  EXPECT_TRUE(is_of_nobody(why[0]));
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

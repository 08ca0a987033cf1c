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

// What sync_wait(), run() and a fiber's handler catch.
chain caught_by(auto&& work) {
  try {
    work();
  } catch (const weft::stopped& how) {
    const weft::stopped kept = how;  // a copy has them, too
    return {kept.causes().begin(), kept.causes().end()};
  }
  ADD_FAILURE() << "it was not stopped";
  return {};
}

task<> waits_for_good() {
  test::gate never;
  co_await never;
}

TEST(causes_of_stopped, are_those_of_the_token_of_sync_wait) {
  weft::stop_source source;
  const unsigned line = std::source_location::current().line() + 1;
  source.request_stop({.reason = "closing"});
  const chain why = caught_by([&] { sync_wait(waits_for_good(), source.token()); });
  ASSERT_EQ(why.size(), 1U);
  EXPECT_STREQ(why[0].reason, "closing");
  EXPECT_EQ(why[0].where.line(), line);
  EXPECT_STREQ(why[0].where.file_name(), std::source_location::current().file_name());
}

TEST(causes_of_stopped, are_those_of_the_token_of_run_on_whatever_thread_it_ends) {
  for (const bool use_caller : {false, true}) {
    weft::pool threads{{.threads = 2, .use_caller = use_caller}};
    weft::stop_source source;
    std::jthread ends{[&] {
      std::this_thread::sleep_for(1ms);
      source.request_stop({.reason = "closing"});
    }};
    const chain why = caught_by([&] { threads.run(weft::sleep_for(1h), source.token()); });
    ASSERT_EQ(why.size(), 1U);
    EXPECT_STREQ(why[0].reason, "closing");
  }
}

TEST(causes_of_stopped, are_of_the_whole_where_a_part_was_stopped_before) {
  weft::stop_source part, whole;
  const auto goes_on = [&]() -> task<> {
    part.request_stop({.reason = "a part"});
    EXPECT_TRUE((co_await as_result(weft::with_env({.stop = part.token()}, waits_for_good))).is_stopped());
    whole.request_stop({.reason = "the whole"});
    co_await waits_for_good();
  };
  const chain why = caught_by([&] { sync_wait(goes_on(), whole.token()); });
  ASSERT_EQ(why.size(), 1U);
  EXPECT_STREQ(why[0].reason, "the whole");
}

TEST(causes_of_stopped, say_so_where_no_line_has_asked) {
  weft::pool threads{{.threads = 1}};
  std::jthread ends;
  const auto spins = [&]() -> task<> {
    ends = std::jthread{[&] { threads.shutdown(weft::pool_shutdown::cancel); }};
    for (;;) co_await weft::yield();
  };
  const chain why = caught_by([&] { threads.run(spins()); });
  ASSERT_EQ(why.size(), 1U);
  EXPECT_TRUE(is_of_nobody(why[0])) << why[0].reason;
}

TEST(causes_of_stopped, are_empty_where_nobody_knows) {
  EXPECT_TRUE(weft::stopped{}.causes().empty());
  EXPECT_TRUE(caught_by([] { weft::result<int>{}.value(); }).empty());
  weft::stop_source part;
  part.request_stop({.reason = "a part"});
  EXPECT_TRUE(caught_by([&] { sync_wait(weft::with_env({.stop = part.token()}, waits_for_good)); }).empty());
}

WEFT_TEST("causes of stopped: a fiber's handler has the chain, and may keep it longer than the fiber lives") {
  weft::stopped kept;
  co_await with_scope([&](scope& s) -> task<> {
    auto fiber = s.go([&] {
      try {
        weft::await(waits_for_good());
      } catch (const weft::stopped& how) {
        kept = how;
        throw;
      }
    });
    co_await weft::yield();
    fiber.request_stop({.reason = "by its handle"});
    EXPECT_TRUE((co_await as_result(std::move(fiber))).is_stopped());
  });
  EXPECT_EQ(kept.causes().size(), 1U);
  if (!kept.causes().empty()) {
    EXPECT_STREQ(kept.causes()[0].reason, "by its handle");
  }
}

}  // namespace

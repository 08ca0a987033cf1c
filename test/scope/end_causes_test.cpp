// What an exception of class stopped tells of why: in who catches it from sync_wait(), run() or a wait in a fiber.
#include <weft/combine.hpp>
#include <weft/fiber.hpp>
#include <weft/future.hpp>
#include <weft/on_scope_exit.hpp>
#include <weft/pool.hpp>
#include <weft/scope.hpp>
#include <weft/task.hpp>
#include <weft/timed.hpp>
#include <weft/with.hpp>

#include <chrono>
#include <source_location>
#include <string_view>
#include <thread>
#include <tuple>
#include <vector>

#include "support/causes.hpp"
#include "support/weft_test.hpp"

namespace {

using namespace std::chrono_literals;
using test::chain, test::is_only, test::is_of_executor, test::line_here, test::waits_for_good, test::yields;
using weft::as_result;
using weft::scope;
using weft::stop_cause;
using weft::sync_wait;
using weft::task;
using weft::when_all;
using weft::when_any;
using weft::with_scope;

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

TEST(causes_of_stopped, say_so_where_the_executor_has_told) {
  weft::pool threads{{.threads = 1}};
  std::jthread ends;
  const auto spins = [&]() -> task<> {
    ends = std::jthread{[&] { threads.shutdown(weft::pool_shutdown::cancel); }};
    for (;;) co_await weft::yield();
  };
  const chain why = caught_by([&] { threads.run(spins()); });
  ASSERT_EQ(why.size(), 1U);
  EXPECT_TRUE(is_of_executor(why[0])) << why[0].reason;
}

TEST(causes_of_stopped, are_empty_where_nobody_knows) {
  EXPECT_TRUE(weft::stopped{}.causes().empty());
  EXPECT_TRUE(caught_by([] { weft::result<int>{}.value(); }).empty());
}

// ---- of a part with a stop of its own -----------------------------------------------------------------------------------

std::vector<std::string_view> reasons_of(const chain& why) {
  std::vector<std::string_view> all;
  for (const stop_cause& one : why) all.emplace_back(one.reason);
  return all;
}
using reasons = std::vector<std::string_view>;
constexpr std::string_view body_was_stopped = "the body of the scope was stopped";

// Something with a stop of its own, which is there already.
struct stopped_part {
  stopped_part() { source.request_stop({.reason = "a part"}); }
  task<> operator()() { co_await weft::with_stop(source.token(), waits_for_good); }
  weft::stop_source source;
};

TEST(causes_of_stopped, are_those_of_a_scope_that_was_stopped_by_itself) {
  unsigned line = 0;
  const auto body = [&](scope& s) -> task<> {
    s.fork(waits_for_good());
    line = line_here() + 1;
    s.request_stop({.reason = "enough"});
    co_await waits_for_good();
  };
  const chain why = caught_by([&] { sync_wait(with_scope(body)); });
  EXPECT_TRUE(is_only(why, "enough", line));
}

TEST(causes_of_stopped, are_those_of_an_environment_of_a_part) {
  stopped_part part;
  const chain why = caught_by([&] { sync_wait(weft::with_env({.stop = part.source.token()}, waits_for_good)); });
  EXPECT_EQ(reasons_of(why), reasons{"a part"});
}

TEST(causes_of_stopped, are_of_a_fork_that_was_stopped_by_its_handle_and_of_the_scope_that_this_has_ended) {
  const auto body = [&](scope& s) -> task<> {
    auto one = s.fork(waits_for_good());
    one.request_stop({.reason = "by its handle"});
    co_await std::move(one);
  };
  const auto waits_before = [&](scope& s) -> task<> {
    auto one = s.fork(waits_for_good());
    auto stops = [&]() -> task<> {
      co_await weft::yield();
      one.request_stop({.reason = "by its handle"});
    };
    s.fork(stops);
    co_await one;
  };
  const reasons both{body_was_stopped, "by its handle"};
  EXPECT_EQ(reasons_of(caught_by([&] { sync_wait(with_scope(body)); })), both);
  EXPECT_EQ(reasons_of(caught_by([&] { sync_wait(with_scope(waits_before)); })), both);
}

TEST(causes_of_stopped, of_a_fork_stay_where_it_is_told_after_its_end) {
  const auto ends_stopped = []() -> task<> {
    weft::promise<void> unknown;
    auto future = unknown.get_future();
    unknown.set_stopped();
    co_await std::move(future);
  };
  const auto body = [&](scope& s) -> task<> {
    auto one = s.fork(ends_stopped());
    while (one.status() == weft::fork_status::running) co_await weft::yield();
    one.request_stop({.reason = "too late"});
    co_await std::move(one);
  };
  EXPECT_EQ(reasons_of(caught_by([&] { sync_wait(with_scope(body)); })), reasons{body_was_stopped});
}

// Under TSan: who is told asks why, while another thread tells by the handle.
TEST(causes_of_stopped, are_asked_for_while_another_thread_tells) {
  weft::pool threads{{.threads = 2}};
  for (int run = 0; run != 200; ++run) {
    const auto body = [&](scope& s) -> task<> {
      auto asks = []() -> task<> {
        for (int times = 0; times != 20; ++times) {
          for (const stop_cause& one : weft::why_stopped()) EXPECT_STREQ(one.reason, "by its handle");
          co_await weft::yield();
        }
      };
      auto one = s.fork(asks());
      co_await weft::yield();
      one.request_stop({.reason = "by its handle"});
      static_cast<void>(co_await as_result(std::move(one)));
    };
    threads.run(with_scope(body));
  }
}

TEST(causes_of_stopped, are_of_a_part_of_a_fork_that_is_awaited) {
  stopped_part part;
  const auto body = [&](scope& s) -> task<> { co_await s.fork(part()); };
  const auto late = [&](scope& s) -> task<> {
    const auto yields_before = [&]() -> task<> {
      co_await weft::yield();
      co_await part();
    };
    co_await s.fork(yields_before);
  };
  const reasons both{body_was_stopped, "a part"};
  EXPECT_EQ(reasons_of(caught_by([&] { sync_wait(with_scope(body)); })), both);
  EXPECT_EQ(reasons_of(caught_by([&] { sync_wait(with_scope(late)); })), both);
}

TEST(causes_of_stopped, are_of_a_child_of_a_join_or_a_group_in_whatever_order_they_end) {
  stopped_part part;
  const auto yields_before = [&]() -> task<> {
    co_await weft::yield();
    co_await part();
  };
  const reasons one{"a part"};
  EXPECT_EQ(reasons_of(caught_by([&] { sync_wait(when_all(part(), yields())); })), one);
  EXPECT_EQ(reasons_of(caught_by([&] { sync_wait(when_all(yields(), yields_before())); })), one);
  EXPECT_EQ(reasons_of(caught_by([&] { sync_wait(when_all(yields_before(), part())); })), one);
  EXPECT_EQ(reasons_of(caught_by(
                [&] { sync_wait(when_all(4, [&](std::size_t i) { return i == 2 ? yields_before() : yields(); })); })),
            one);
  EXPECT_EQ(reasons_of(caught_by([&] { sync_wait(when_any(part(), yields_before())); })), one);
  EXPECT_EQ(reasons_of(caught_by([&] { sync_wait(weft::timeout(1h, part())); })), one);
  EXPECT_EQ(reasons_of(caught_by([&] { sync_wait(weft::timeout(1h, yields_before())); })), one);
  EXPECT_EQ(reasons_of(caught_by([&] { sync_wait(weft::timeout(1h, when_all(yields(), yields_before()))); })), one);
}

TEST(causes_of_stopped, of_a_part_come_home_from_another_executor) {
  weft::pool threads{{.threads = 2}};
  stopped_part part;
  const reasons one{"a part"};
  EXPECT_EQ(reasons_of(caught_by([&] { threads.run(part()); })), one);
  EXPECT_EQ(reasons_of(caught_by([&] { sync_wait(weft::start_on(threads.executor(), part())); })), one);
  EXPECT_EQ(reasons_of(caught_by([&] { sync_wait(when_all(weft::start_on(threads.executor(), part()), yields())); })),
            one);
  weft::pool helped{{.threads = 2, .use_caller = true}};
  const auto many = [&] { return when_all(50, [&](std::size_t) { return part(); }, std::ignore); };
  EXPECT_EQ(reasons_of(caught_by([&] { helped.run(many()); })), one);
}

TEST(causes_of_stopped, of_a_part_outlast_a_cleanup_that_waits) {
  stopped_part part, other;
  const auto cleans_up = [&]() -> task<> {
    const auto cleanup = [&]() -> task<> {
      co_await weft::sleep_for(1ms);
      EXPECT_TRUE((co_await as_result(other())).is_stopped());
    };
    co_await weft::on_scope_exit(cleanup);
    co_await part();
  };
  EXPECT_EQ(reasons_of(caught_by([&] { sync_wait(cleans_up()); })), reasons{"a part"});
}

TEST(causes_of_stopped, are_not_those_of_a_part_that_was_caught_before) {
  stopped_part part;
  weft::stop_source last;
  last.request_stop({.reason = "the last"});
  const auto goes_on = [&]() -> task<> {
    EXPECT_TRUE((co_await as_result(part())).is_stopped());
    co_await weft::with_stop(last.token(), waits_for_good);
  };
  EXPECT_EQ(reasons_of(caught_by([&] { sync_wait(goes_on()); })), reasons{"the last"});
}

WEFT_TEST("causes of stopped: a fiber that awaits a part has those of the part") {
  chain why;
  stopped_part part;
  co_await with_scope([&](scope& s) -> task<> {
    auto fiber = s.go([&] {
      try {
        weft::await(part());
      } catch (const weft::stopped& how) {
        why = {how.causes().begin(), how.causes().end()};
        throw;
      }
    });
    EXPECT_TRUE((co_await as_result(std::move(fiber))).is_stopped());
  });
  EXPECT_EQ(reasons_of(why), reasons{"a part"});
}

TEST(causes_of_stopped, of_a_part_leave_a_fiber) {
  stopped_part part;
  const auto body = [&](scope& s) -> task<> { co_await s.go([&] { weft::await(part()); }); };
  const reasons both{body_was_stopped, "a part"};
  EXPECT_EQ(reasons_of(caught_by([&] { sync_wait(with_scope(body)); })), both);
}

TEST(causes_of_stopped, of_a_fiber_that_exits_are_none_of_what_it_has_caught_before) {
  stopped_part part;
  const auto body = [&](scope& s) -> task<> {
    co_await s.go([&] {
      try {
        weft::await(part());
      } catch (const weft::stopped&) {  // it goes on
      }
      weft::this_fiber::exit();
    });
  };
  EXPECT_EQ(reasons_of(caught_by([&] { sync_wait(with_scope(body)); })), reasons{body_was_stopped});
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

#include <weft/combine.hpp>
#include <weft/future.hpp>

#include <memory>
#include <memory_resource>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/tasks.hpp"
#include "support/timed_root.hpp"
#include "support/weft_test.hpp"

namespace {

using namespace std::chrono_literals;
using test::give;
using test::run_timed;
using test::virtual_clock;
using weft::as_result;
using weft::errc;
using weft::result;
using weft::retry;
using weft::sleep_for;
using weft::task;
using weft::timeout;

task<int> nap(std::chrono::milliseconds d, int value) {
  co_await sleep_for(d);
  co_return value;
}

// ---- timeout --------------------------------------------------------------------------------------------------------

TEST(timeout, what_is_in_time_gives_its_value) {
  virtual_clock time;
  auto quick = [&]() -> task<> {
    EXPECT_EQ(co_await timeout(5ms, nap(2ms, 7)), 7);
    EXPECT_EQ(co_await (nap(2ms, 8) | timeout(5ms)), 8);
    EXPECT_EQ(time.armed(), 0U);
    int object = 0;
    auto refer = [&]() -> task<int&> { co_return object; };
    EXPECT_EQ(&co_await timeout(1s, refer()), &object);
    auto move_only = []() -> task<std::unique_ptr<int>> { co_return std::make_unique<int>(3); };
    EXPECT_EQ(*co_await timeout(1s, move_only()), 3);
    co_await timeout(1s, sleep_for(1ms));
  };
  EXPECT_TRUE(run_timed(time, quick()));
  EXPECT_EQ(time.elapsed(), 5ms);
}

TEST(timeout, what_never_waits_arms_no_timer) {
  virtual_clock time;
  auto ready = []() -> task<> {
    EXPECT_EQ(co_await timeout(5ms, give(1)), 1);
    EXPECT_EQ(co_await timeout(0ms, give(2)), 2);
  };
  EXPECT_TRUE(run_timed(time, ready()));
  EXPECT_EQ(time.armed_so_far(), 0U);
}

TEST(timeout, what_is_late_is_stopped_joined_and_timed_out) {
  virtual_clock time;
  std::atomic<int> alive{0};
  auto held = [&]() -> task<int> {
    const test::counted one{alive};
    co_return co_await nap(1h, 1);
  };
  auto late = [&]() -> task<> {
    const auto how = co_await as_result(timeout(5ms, held()));
    EXPECT_EQ(how.error(), errc::timed_out);
    EXPECT_EQ(alive, 0);
    EXPECT_EQ(time.elapsed(), 5ms);
    try {
      co_await timeout(2500us, held());
      ADD_FAILURE();
    } catch (const weft::error& thrown) {
      EXPECT_STREQ(thrown.what(), "timeout of 2.5 ms: timed out");
    }
  };
  EXPECT_TRUE(run_timed(time, late()));
  EXPECT_EQ(time.armed(), 0U);
}

TEST(timeout, of_zero_gives_no_time_to_wait) {
  virtual_clock time;
  auto none = []() -> task<> {
    EXPECT_EQ((co_await as_result(timeout(0ms, nap(1ms, 1)))).error(), errc::timed_out);
    EXPECT_EQ((co_await as_result(timeout(-1s, nap(1ms, 1)))).error(), errc::timed_out);
  };
  EXPECT_TRUE(run_timed(time, none()));
  EXPECT_EQ(time.elapsed(), 0ms);
}

TEST(timeout, of_more_than_there_is_never_fires) {
  virtual_clock time;
  auto long_enough = []() -> task<> { EXPECT_EQ(co_await timeout(std::chrono::hours::max(), nap(1ms, 1)), 1); };
  EXPECT_TRUE(run_timed(time, long_enough()));
}

TEST(timeout, a_late_value_or_failure_is_not_lost) {
  virtual_clock time;
  test::gate never;
  auto ignores = [&]() -> task<int> {
    (void)co_await as_result(never.pass());
    co_return 9;
  };
  auto breaks = [&]() -> task<int> {
    (void)co_await as_result(never.pass());
    throw std::runtime_error{"late"};
  };
  auto late = [&]() -> task<> {
    EXPECT_EQ(co_await timeout(5ms, ignores()), 9);
    EXPECT_THROW(co_await timeout(5ms, breaks()), std::runtime_error);
  };
  EXPECT_TRUE(run_timed(time, late()));
  EXPECT_EQ(time.elapsed(), 10ms);
}

TEST(timeout, a_stop_is_no_timeout) {
  virtual_clock time;
  auto limited = []() -> task<int> { co_return co_await timeout(5ms, nap(3ms, 1)); };
  EXPECT_TRUE(run_timed(time, limited(), [&](auto& root) { root.request_stop(); }).is_stopped());
  EXPECT_EQ(time.armed(), 0U);

  EXPECT_TRUE(test::run_stopped(time, limited()).is_stopped());
  EXPECT_EQ(time.armed(), 0U);

  weft::manual_executor loop;
  test::timed_root<int> after{{.executor = &loop, .clock = &time}, limited()};
  after.schedule();
  loop.run_all();
  time.advance(3ms);
  loop.run_one();  // the child ends
  after.request_stop();
  loop.run_all();
  EXPECT_EQ(after.take().value(), 1);
}

TEST(timeout, what_is_stopped_by_itself_ends_stopped) {
  virtual_clock time;
  auto limited = []() -> task<> {
    weft::promise<int> promise;
    auto outcome = promise.get_future();
    promise.set_stopped();
    co_await timeout(5ms, std::move(outcome));
  };
  EXPECT_TRUE(run_timed(time, limited()).is_stopped());
}

TEST(timeout, the_shortest_of_nested_ones_wins) {
  virtual_clock time;
  auto inner_first = []() -> task<> {
    const auto how = co_await as_result(timeout(10ms, timeout(2ms, nap(1h, 1))));
    EXPECT_EQ(how.error(), errc::timed_out);
  };
  EXPECT_TRUE(run_timed(time, inner_first()));
  EXPECT_EQ(time.elapsed(), 2ms);
  bool inner_timed_out = true;
  auto inner = [&]() -> task<int> {
    const auto how = co_await as_result(timeout(10ms, nap(1h, 1)));
    inner_timed_out = !how.is_stopped();
    co_return 0;
  };
  auto outer_first = [&]() -> task<> { EXPECT_EQ(co_await timeout(2ms, inner()), 0); };
  EXPECT_TRUE(run_timed(time, outer_first()));
  EXPECT_FALSE(inner_timed_out);
  EXPECT_EQ(time.elapsed(), 4ms);
}

// The timer ends the work here and now, and with it the frame that the timer stood in. Frames from the heap, so that the
// address sanitizer sees who touches them afterwards.
TEST(timeout, the_timer_may_take_its_own_frame_along) {
  const test::calm at_once;
  virtual_clock time;
  test::gate never;
  auto limited = [&](std::allocator_arg_t, std::pmr::memory_resource*) -> task<int> {
    const auto how = co_await as_result(timeout(1ms, never.pass()));
    co_return how.error() == errc::timed_out ? 1 : 0;
  };
  weft::inline_executor here;
  test::timed_root<int> root{{.executor = &here, .clock = &time},
                             limited(std::allocator_arg, std::pmr::new_delete_resource())};
  root.schedule();
  EXPECT_FALSE(root.over());
  time.advance(1ms);
  ASSERT_TRUE(root.over());
  EXPECT_EQ(root.take().value(), 1);
}

TEST(timeout, the_timer_the_work_and_a_stop_race) {
  for (int round = 0; round != test::rounds(3'000); ++round) {
    virtual_clock time;
    test::gate door;
    weft::stop_source source;
    std::atomic<int> ended{0}, alive{0};
    auto work = [&]() -> task<int> {
      const test::counted one{alive};
      co_await door;
      co_return 1;
    };
    auto limited = [&]() -> task<int> { co_return co_await timeout(1ms, work()); };
    weft::inline_executor here;
    test::timed_root<int> root{{.executor = &here, .clock = &time}, limited()};
    std::thread waiter{[&] {
      root.schedule();
      ++ended;
    }};
    std::thread opener{[&] {
      door.open();
      ++ended;
    }};
    std::thread stopper{[&] {
      if (round % 2 == 0) root.request_stop();
      ++ended;
    }};
    for (int i = 0; i != 5; ++i) time.advance(1ms);
    waiter.join(), opener.join(), stopper.join();
    time.advance(1ms);
    test::settle();
    ASSERT_TRUE(root.over());
    const auto how = root.take();
    EXPECT_TRUE(how.is_stopped() || how.error() == errc::timed_out || how.value() == 1);
    EXPECT_EQ(alive, 0);
    EXPECT_EQ(time.armed(), 0U);
  }
}

TEST(timeout, on_the_real_clock) {
  test::gate never;
  for (int i = 0; i != 20; ++i) {
    auto late = [&]() -> task<> {
      EXPECT_EQ((co_await as_result(timeout(100us, never.pass()))).error(), errc::timed_out);
    };
    weft::sync_wait(late());
    std::atomic<int> ended{0};
    weft::start(late(), [&](result<void> how) {
      EXPECT_TRUE(how);
      ++ended;
    });
    test::until([&] { return ended == 1; });
  }
  EXPECT_EQ(never.waiting(), 0);
}

// ---- retry ----------------------------------------------------------------------------------------------------------

struct flaky {
  int failures;
  std::vector<weft::clock::time_point> calls{};

  task<int> operator()() {
    calls.push_back(weft::current_clock().now());
    if (failures-- > 0) throw std::runtime_error{"attempt " + std::to_string(calls.size())};
    co_return static_cast<int>(calls.size());
  }
};

TEST(retry, tries_until_it_succeeds_with_growing_delays) {
  virtual_clock time;
  flaky work{.failures = 4};
  auto attempt = [&] { return work(); };
  const weft::retry_policy policy{.attempts = 6, .delay = 10ms, .factor = 3, .max_delay = 200ms, .jitter = 0};
  EXPECT_EQ(run_timed(time, retry(policy, attempt)).value(), 5);
  std::vector<std::chrono::nanoseconds> delays;
  for (std::size_t i = 1; i != work.calls.size(); ++i) delays.push_back(work.calls[i] - work.calls[i - 1]);
  EXPECT_EQ(delays, (std::vector<std::chrono::nanoseconds>{10ms, 30ms, 90ms, 200ms}));
}

TEST(retry, throws_the_last_failure) {
  virtual_clock time;
  flaky work{.failures = 100};
  auto attempt = [&] { return work(); };
  const auto how = run_timed(time, retry({.attempts = 3, .delay = 1ms}, attempt));
  try {
    (void)how.value();
    ADD_FAILURE();
  } catch (const std::runtime_error& thrown) {
    EXPECT_STREQ(thrown.what(), "attempt 3");
  }
  EXPECT_EQ(work.calls.size(), 3U);
}

TEST(retry, makes_one_attempt_at_least_and_gives_up_what_is_not_worth_it) {
  virtual_clock time;
  flaky work{.failures = 100};
  auto attempt = [&] { return work(); };
  EXPECT_THROW(run_timed(time, retry({.attempts = 0}, attempt)).value(), std::runtime_error);
  EXPECT_EQ(work.calls.size(), 1U);
  const auto never = +[](const std::exception_ptr&) { return false; };
  EXPECT_THROW(run_timed(time, retry({.attempts = 9, .worth_it = never}, attempt)).value(), std::runtime_error);
  EXPECT_EQ(work.calls.size(), 2U);
  EXPECT_EQ(time.elapsed(), 0ms);
}

TEST(retry, jitter_shortens_at_random_and_a_seed_repeats_it) {
  auto delays = [](std::uint64_t seed) {
    virtual_clock time;
    flaky work{.failures = 8};
    auto attempt = [&] { return work(); };
    EXPECT_TRUE(
        run_timed(time, retry({.attempts = 9, .delay = 10ms, .factor = 1, .jitter = 0.5, .seed = seed}, attempt)));
    std::vector<std::chrono::nanoseconds> all;
    for (std::size_t i = 1; i != work.calls.size(); ++i) all.push_back(work.calls[i] - work.calls[i - 1]);
    for (const auto one : all) EXPECT_TRUE(one > 5ms && one <= 10ms);
    return all;
  };
  EXPECT_EQ(delays(1), delays(1));
  EXPECT_NE(delays(1), delays(2));
  EXPECT_NE(delays(0), delays(0));
}

TEST(retry, plain_functions_pipes_and_values_that_only_move) {
  virtual_clock time;
  int left = 2;
  auto plain = [&] {
    if (left-- > 0) throw std::runtime_error{"not yet"};
    return std::make_unique<int>(5);
  };
  EXPECT_EQ(*run_timed(time, plain | retry({.delay = 1ms, .jitter = 0})).value(), 5);
  EXPECT_EQ(time.elapsed(), 3ms);
  auto limited = [&]() -> task<int> {
    auto one = [] { return nap(10ms, 1); };
    auto in_time = [&] { return one() | timeout(5ms); };
    co_return co_await retry({.attempts = 3, .delay = 1ms, .jitter = 0}, in_time);
  };
  EXPECT_EQ(run_timed(time, limited()).error(), errc::timed_out);
  EXPECT_EQ(time.elapsed(), 3ms + 5ms + 1ms + 5ms + 2ms + 5ms);
}

TEST(retry, a_stop_ends_the_attempt_or_the_delay) {
  virtual_clock time;
  int calls = 0;
  auto fails = [&]() -> task<int> {
    ++calls;
    throw std::runtime_error{"again"};
    co_return 0;
  };
  EXPECT_TRUE(run_timed(time, retry({.attempts = 5, .delay = 10ms}, fails), [](auto& root) {
                root.request_stop();
              }).is_stopped());
  EXPECT_EQ(calls, 1);
  auto waits = [&] {
    ++calls;
    return nap(1s, 1);
  };
  EXPECT_TRUE(run_timed(time, retry({.attempts = 5, .delay = 10ms}, waits), [](auto& root) {
                root.request_stop();
              }).is_stopped());
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(time.armed(), 0U);
}

}  // namespace

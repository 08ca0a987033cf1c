// Options that are durations or time points take any kind of them, and cut what the clock can't tell.
#include <weft/weft.hpp>

#include <chrono>
#include <limits>
#include <stdexcept>
#include <weft/test.hpp>

#include "support/weft_test.hpp"

namespace {

using namespace std::chrono_literals;
using weft::scope;
using weft::task;

constexpr auto longest = weft::clock::duration::max();
using real = std::chrono::duration<double>;
constexpr real endless{std::numeric_limits<double>::infinity()};
using real_time = std::chrono::time_point<std::chrono::steady_clock, real>;
using hour_of_day = std::chrono::time_point<std::chrono::steady_clock, std::chrono::hours>;

// Given as it is; as hours, whose nanoseconds overflow; and as a double without end.
TEST(durations, of_options_are_cut) {
  EXPECT_EQ(weft::retry_policy{.delay = 5ms}.delay, 5ms);
  EXPECT_EQ(weft::retry_policy{.delay = std::chrono::hours::max()}.delay, longest);
  EXPECT_EQ(weft::retry_policy{.delay = endless}.delay, longest);
  EXPECT_EQ(weft::retry_policy{.max_delay = std::chrono::hours::max()}.max_delay, longest);
  EXPECT_EQ(weft::work_options{.limit = std::chrono::hours::max()}.limit, longest);
  EXPECT_EQ(weft::work_options{.limit = real{0.5}}.limit, 500ms);
  EXPECT_EQ(weft::scope_options{.stop_within = std::chrono::hours::max()}.stop_within, longest);
  EXPECT_EQ(weft::scope_options{.stop_within = endless}.stop_within, longest);
  EXPECT_EQ(weft::scope_options{.deadline = hour_of_day::max()}.deadline, weft::clock::time_point::max());
  EXPECT_EQ(weft::scope_options{.deadline = real_time{endless}}.deadline, weft::clock::time_point::max());
  EXPECT_EQ(weft::restart_limits{.within = std::chrono::hours::max()}.within, longest);
  EXPECT_EQ(weft::stack_pool_options{.idle_for = std::chrono::hours::max()}.idle_for, longest);
  EXPECT_EQ(weft::blocking_options{.idle = std::chrono::hours::max()}.idle, longest);
  EXPECT_EQ(weft::test::run_options{.patience = std::chrono::hours::max()}.patience, longest);
}

TEST(durations, below_all_that_the_clock_can_tell) {
  EXPECT_EQ(weft::retry_policy{.delay = std::chrono::hours::min()}.delay, weft::clock::duration::min());
  EXPECT_EQ(weft::scope_options{.deadline = hour_of_day::min()}.deadline, weft::clock::time_point::min());
}

TEST(durations, that_are_no_number_end_the_program) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  constexpr real nan{std::numeric_limits<double>::quiet_NaN()};
  const auto says = "weft: a duration or a time was given that is no number";
  EXPECT_DEATH(static_cast<void>(weft::retry_policy{.delay = nan}), says);
  EXPECT_DEATH(static_cast<void>(weft::scope_options{.stop_within = nan}), says);
  EXPECT_DEATH(static_cast<void>(weft::scope_options{.deadline = real_time{nan}}), says);
  EXPECT_DEATH(static_cast<void>(weft::blocking_options{.idle = nan}), says);
}

// The first retry comes at the largest delay that there is: what was below zero before ended the program.
TEST(durations, a_retry_with_no_end_to_its_delays) {
  weft::test::run([]() -> task<> {
    int tried = 0;
    auto fails_once = [&]() -> task<int> {
      if (++tried == 1) throw std::runtime_error{"once"};
      co_return tried;
    };
    const weft::retry_policy policy{.delay = 1ms, .max_delay = std::chrono::hours::max(), .jitter = 0};
    EXPECT_EQ(co_await weft::retry(policy, fails_once), 2);
    EXPECT_EQ(weft::test::elapsed(), 1ms);
  });
}

TEST(durations, a_limit_of_listed_work_that_never_comes) {
  weft::test::run([]() -> task<> {
    weft::registry jobs;
    auto rests = []() -> task<int> {
      co_await weft::sleep_for(1h);
      co_return 1;
    };
    auto body = [&](scope& s) -> task<int> {
      auto one = jobs.fork({.limit = std::chrono::hours::max()}, s, rests);
      EXPECT_TRUE(jobs.set_limit(one.id, std::chrono::hours::max()));
      co_return co_await std::move(one.work);
    };
    EXPECT_EQ(co_await weft::with_scope(body), 1);
  });
}

TEST(durations, a_scope_whose_deadline_never_comes) {
  weft::test::run([]() -> task<> {
    auto body = [](scope& s) -> task<int> {
      s.fork([]() -> task<> { co_await weft::sleep_for(1h); });
      co_return 1;
    };
    EXPECT_EQ(co_await weft::with_scope({.deadline = hour_of_day::max()}, body), 1);
    EXPECT_EQ(co_await weft::with_scope({.stop_within = std::chrono::hours::max()}, body), 1);
  });
}

}  // namespace

// Bulkhead and circuit breaker: when it opens, what comes through then, and when it closes again.
#include <gtest/gtest.h>
#include <weft/test.hpp>
#include <weft/weft.hpp>

#define main program
#include "../../examples/recipes/circuit_breaker.cpp"
#undef main

namespace {

w::task<bool> is_answered(guarded_service& service) {
  const auto answer = co_await w::as_result(service.ask());
  co_return answer.has_value();
}

TEST(circuit_breaker, opens_after_three_failures_and_closes_after_a_success) {
  w::test::run([]() -> w::task<> {
    guarded_service service;
    for (int i = 0; i != 5; ++i) EXPECT_FALSE(co_await is_answered(service));
    EXPECT_EQ(service.asked, 3);  // it is open: the last two failed at once
    EXPECT_EQ(w::test::elapsed(), 30ms);

    co_await w::sleep_for(1s);
    EXPECT_FALSE(co_await is_answered(service));
    EXPECT_FALSE(co_await is_answered(service));
    EXPECT_EQ(service.asked, 4);  // a trial, which has it open for a second more

    service.is_broken = false;
    co_await w::sleep_for(999ms);
    EXPECT_FALSE(co_await is_answered(service));
    co_await w::sleep_for(1ms);
    auto [one, other] = co_await w::when_all(is_answered(service), is_answered(service));
    EXPECT_TRUE(one && !other);  // one trial at a time
    for (int i = 0; i != 5; ++i) EXPECT_TRUE(co_await is_answered(service));
  });
}

TEST(circuit_breaker, lets_another_trial_through_when_one_was_stopped) {
  w::test::run([]() -> w::task<> {
    guarded_service service;
    for (int i = 0; i != 3; ++i) co_await is_answered(service);
    service.is_broken = false;
    co_await w::sleep_for(1s);
    const auto trial = co_await w::as_result(w::timeout(5ms, service.ask()));
    EXPECT_EQ(trial.error(), w::errc::timed_out);
    EXPECT_TRUE(co_await is_answered(service));
  });
}

TEST(bulkhead, has_room_for_two_and_no_line) {
  w::test::run([]() -> w::task<> {
    guarded_service service;
    service.is_broken = false;
    auto [a, b, c] = co_await w::when_all(is_answered(service), is_answered(service), is_answered(service));
    EXPECT_TRUE(a && b && !c);
    EXPECT_EQ(w::test::elapsed(), 10ms);
  });
}

struct is_stopped {  // made anew for each run
  guarded_service service;
  w::task<> run() {
    for (int i = 0; i != 3; ++i) co_await is_answered(service);
    service.is_broken = false;
    co_await w::sleep_for(1s);
    const auto trial = co_await w::as_result(w::timeout(5ms, service.ask()));
    w::test::require(!trial.has_value(), "it was not stopped");
    co_await service.ask();  // wherever one was stopped, its room and its trial are free
  }
};
TEST(circuit_breaker, is_not_stuck_wherever_a_call_is_stopped) {
  w::test::cancellation_sweep<is_stopped>("bulkhead and circuit breaker");
}

}  // namespace

// Graceful shutdown: who is at work may end, for two seconds; who is left then is stopped.
#include <gtest/gtest.h>
#include <weft/test.hpp>
#include <weft/weft.hpp>

#define main program
#include "../../examples/recipes/graceful_shutdown.cpp"
#undef main

namespace {

w::task<int> told_after(std::chrono::milliseconds time) {
  co_await w::sleep_for(time);
  co_return SIGTERM;
}

TEST(graceful_shutdown, ends_when_the_last_who_is_at_work_has_ended) {
  w::test::run([]() -> w::task<> {
    database store;
    co_await serve(store, told_after(105ms));
    EXPECT_EQ(store.begun, 10);
    EXPECT_EQ(store.answered, 10);
    EXPECT_EQ(w::test::elapsed(), 195ms);  // 95 ms after the last one began
  });
}

TEST(graceful_shutdown, stops_who_is_left_after_two_seconds) {
  w::test::run([]() -> w::task<> {
    database store;
    co_await serve(store, told_after(215ms));
    EXPECT_EQ(store.begun, 21);
    EXPECT_EQ(store.answered, 20);  // one would take an hour
    EXPECT_EQ(w::test::elapsed(), 2215ms);
  });
}

TEST(graceful_shutdown, is_told_by_a_signal) {
  w::test::run([]() -> w::task<> {
    database store;
    co_await w::when_all(serve(store, w::interrupted()), end_program());
    EXPECT_EQ(store.answered, 20);
  });
}

struct is_stopped {
  database store;
  w::task<> run() { co_await serve(store, told_after(25ms)); }
  void check(const w::result<void>& how) const {
    w::test::require(how ? store.answered == 2 : how.is_stopped(), "who was at work was not waited for");
  }
};
TEST(graceful_shutdown, leaves_nobody_at_work_wherever_it_is_stopped) {
  w::test::cancellation_sweep<is_stopped>({.each_alone = false}, "graceful shutdown");
}

}  // namespace

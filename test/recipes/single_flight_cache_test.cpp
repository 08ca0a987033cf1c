// The cache: one load for all who ask at once, a failure is told to those who waited and not kept, and a load that nobody waits
// for any more is stopped.
#include <gtest/gtest.h>
#include <weft/test.hpp>
#include <weft/weft.hpp>

#define main program
#include "../../examples/recipes/single_flight_cache.cpp"
#undef main

namespace {

w::task<w::result<std::string>> asked(cache& of) { co_return co_await w::as_result(of.get("red")); }

TEST(single_flight_cache, loads_once_for_all_who_ask_at_once) {
  w::test::for_each_seed(20, [](std::uint64_t seed) {
    w::test::run({.seed = seed}, []() -> w::task<> {
      cache of;
      for (int loads = 1; loads != 3; ++loads) {
        std::vector<w::task<w::result<std::string>>> all;
        for (int i = 0; i != 10; ++i) all.push_back(asked(of));
        for (const auto& got : co_await w::when_all(std::move(all)))
          EXPECT_EQ(got.has_value(), loads == 2);  // the first fails
        EXPECT_EQ(of.loads, loads);
      }
      const std::string again = co_await of.get("red");
      EXPECT_EQ(again, "value of red");
      EXPECT_EQ(of.loads, 2);
      EXPECT_EQ(w::test::elapsed(), 10ms);
    });
  });
}

TEST(single_flight_cache, stops_a_load_when_the_last_who_waited_is_gone) {
  w::test::run([]() -> w::task<> {
    cache of;
    of.loads = 1;  // none fails
    const auto patient = [&]() -> w::task<> {
      const std::string got = co_await of.get("red");
      EXPECT_EQ(got, "value of red");
    };
    const auto first = co_await w::as_result(w::timeout(3ms, of.get("red")));
    EXPECT_EQ(first.error(), w::errc::timed_out);
    EXPECT_EQ(of.loads, 2);
    co_await w::when_all(w::as_result(w::timeout(3ms, of.get("red"))), patient());
    EXPECT_EQ(of.loads, 3);  // the one that nobody waited for is forgotten; this one went on for who was left
    EXPECT_EQ(w::test::elapsed(), 8ms);
  });
}

struct is_stopped {
  cache of;
  int answers = 0;

  w::task<> ask() {
    co_await of.get("red");
    ++answers;
  }
  w::task<> run() {
    of.loads = 1;
    co_await w::when_all(ask(), ask());
    co_await ask();
  }
  void check(const w::result<void>& how) const {
    w::test::require(how ? answers == 3 && of.loads == 2 : how.is_stopped(), "it failed");
  }
};
TEST(single_flight_cache, waits_for_no_load_that_was_stopped) { w::test::cancellation_sweep<is_stopped>("cache"); }

}  // namespace

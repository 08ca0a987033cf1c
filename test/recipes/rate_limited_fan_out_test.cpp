// The rate-limited fan-out: how many begin in a second and how many there are at once holds for retries, too.
#include <gtest/gtest.h>
#include <weft/test.hpp>
#include <weft/weft.hpp>

#include <algorithm>

#define main program
#include "../../examples/recipes/rate_limited_fan_out.cpp"
#undef main

namespace {

// Fails the first `failures` attempts of each question, and writes down what it is asked when.
struct watched {
  int failures = 0, answers = 0;
  std::chrono::milliseconds takes = 20ms;
  int at_once = 0, most_at_once = 0;
  std::vector<w::clock::time_point> begun{};
  std::vector<int> attempts = std::vector<int>(40);

  struct counted {
    int& of;
    ~counted() { --of; }
  };
  w::task<int> ask(std::size_t id) {
    begun.push_back(w::current_clock().now());
    most_at_once = std::max(most_at_once, ++at_once);
    const counted mine{at_once};
    co_await w::sleep_for(takes);
    if (++attempts[id] <= failures) throw std::runtime_error{"busy"};
    ++answers;
    co_return static_cast<int>(id);
  }
  // Whether there is a second in which more began than `rate` and the burst.
  bool was_asked_too_fast() const {
    for (std::size_t i = 0; i + 15 < begun.size(); ++i)
      if (begun[i + 15] - begun[i] < 1s) return true;
    return false;
  }
};

w::task<> ask_forty(client<watched>& mine) {
  std::vector<w::task<int>> all;
  for (std::size_t id = 0; id != 40; ++id) all.push_back(mine.ask(id));
  co_await w::when_all(std::move(all));
}

TEST(rate_limited_fan_out, keeps_the_rate_with_its_retries) {
  w::test::for_each_seed(20, [](std::uint64_t seed) {
    w::test::run({.seed = seed}, []() -> w::task<> {
      watched far_away{.failures = 2};
      client<watched> mine{far_away};
      co_await ask_forty(mine);
      EXPECT_EQ(far_away.answers, 40);
      EXPECT_EQ(far_away.begun.size(), 120U);  // each was asked three times
      EXPECT_FALSE(far_away.was_asked_too_fast());
      EXPECT_GE(w::test::elapsed(), 11'500ms);  // all but the burst of five wait for a token
    });
  });
}

TEST(rate_limited_fan_out, has_three_calls_at_once) {
  w::test::run([]() -> w::task<> {
    watched far_away{.takes = 10s};
    client<watched> mine{far_away};
    co_await ask_forty(mine);
    EXPECT_EQ(far_away.most_at_once, 3);
    EXPECT_EQ(w::test::elapsed(), 140s);  // forty by threes, of which the last one is alone
  });
}

TEST(rate_limited_fan_out, gives_up_after_three_attempts) {
  w::test::run([]() -> w::task<> {
    watched far_away{.failures = 3};
    client<watched> mine{far_away};
    const auto answer = co_await w::as_result(mine.ask(0));
    EXPECT_FALSE(answer.has_value());
    EXPECT_EQ(far_away.attempts[0], 3);
    EXPECT_EQ(mine.at_once.available(), 3U);
  });
}

struct is_stopped {
  watched far_away{.failures = 1};
  client<watched> mine{far_away};
  w::task<> run() { co_await w::when_all(mine.ask(0), mine.ask(1)); }
  void check() const {
    w::test::require(mine.at_once.available() == 3, "a permit was lost");
    w::test::require(far_away.at_once == 0, "a call goes on");
  }
};
TEST(rate_limited_fan_out, gives_its_permits_back_wherever_it_is_stopped) {
  w::test::cancellation_sweep<is_stopped>("rate-limited fan-out");
}

}  // namespace

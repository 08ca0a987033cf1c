// Publish and subscribe: each subscriber gets every price since it subscribed, and the publisher waits for the slowest one.
#include <gtest/gtest.h>
#include <weft/test.hpp>
#include <weft/weft.hpp>

#define main program
#include "../../examples/recipes/pub_sub.cpp"
#undef main

namespace {

TEST(pub_sub, gives_each_price_to_each_and_waits_for_the_slowest) {
  w::test::for_each_seed(20, [](std::uint64_t seed) {
    w::test::run({.seed = seed}, []() -> w::task<> {
      prices all{{.capacity = 8}};
      w::clock::duration published{};
      const auto publish_and_look = [&]() -> w::task<> {
        co_await publish(all);
        published = w::test::elapsed();
      };
      auto quick = sum(all.subscribe(), 1ms), slow = sum(all.subscribe(), 10ms);
      auto [a, b, none] = co_await w::when_all(std::move(quick), std::move(slow), publish_and_look());
      EXPECT_EQ(a, 5050);
      EXPECT_EQ(b, 5050);
      EXPECT_EQ(published, 910ms);  // when the slow one takes the 92nd, there is room for the last
      EXPECT_EQ(w::test::elapsed(), 1s);
    });
  });
}

TEST(pub_sub, gives_who_comes_late_what_is_published_then) {
  w::test::run([]() -> w::task<> {
    prices all{{.capacity = 8}};
    auto early = all.subscribe();
    co_await all.send(1000);
    auto late = all.subscribe();
    auto [a, b, none] = co_await w::when_all(sum(std::move(early), 1ms), sum(std::move(late), 1ms), publish(all, 3));
    EXPECT_EQ(a, 1006);
    EXPECT_EQ(b, 6);
  });
}

TEST(pub_sub, does_not_wait_for_who_has_gone) {
  w::test::run([]() -> w::task<> {
    prices all{{.capacity = 2}};
    const auto leave_early = [](prices::receiver from) -> w::task<> {
      const auto one = co_await from.receive();
      EXPECT_EQ(one, 1);
    };
    co_await w::when_all(leave_early(all.subscribe()), publish(all));
  });
}

struct is_stopped {
  prices all{{.capacity = 1}};
  long quick = 0, slow = 0;

  w::task<> subscribe_to(prices::receiver from, std::chrono::milliseconds each, long& into) {
    into = co_await sum(std::move(from), each);
  }
  w::task<> run() {
    auto one = subscribe_to(all.subscribe(), 1ms, quick), other = subscribe_to(all.subscribe(), 2ms, slow);
    co_await w::when_all(std::move(one), std::move(other), publish(all, 3));
  }
  void check(const w::result<void>& how) const {
    w::test::require(how ? quick == 6 && slow == 6 : how.is_stopped(), "one has missed a price");
  }
};
// If the publisher alone were stopped, its subscribers would wait for ever: a program stops them together.
constexpr w::test::sweep_options together{.each_alone = false};
TEST(pub_sub, ends_wherever_it_is_stopped) {
  w::test::cancellation_sweep<is_stopped>(together, "publish and subscribe");
}

}  // namespace

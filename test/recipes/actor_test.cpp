// The actor: what was sent before the end is done, who sends faster than it works waits, and who sends later is told.
#include <gtest/gtest.h>
#include <weft/test.hpp>
#include <weft/weft.hpp>

#define main program
#include "../../examples/recipes/actor.cpp"
#undef main

using namespace std::chrono_literals;

namespace {

TEST(actor, does_what_was_sent_before_it_was_closed) {
  w::test::for_each_seed(20, [](std::uint64_t seed) {
    w::test::run({.seed = seed}, []() -> w::task<> {
      account mine;
      long balance = 0;
      const auto use = [&]() -> w::task<> {
        co_await w::when_all(pay_often(mine), pay_often(mine));
        balance = co_await mine.balance();
        mine.close();
      };
      co_await w::when_all(mine.run(), use());
      EXPECT_EQ(balance, 2000);
    });
  });
}

TEST(actor, has_who_sends_faster_than_it_works_wait) {
  w::test::run([]() -> w::task<> {
    account mine;
    int sent = 0;
    const auto send = [&]() -> w::task<> {
      for (; sent != 20; ++sent) co_await mine.pay(1);
      mine.close();
    };
    const auto work_later = [&]() -> w::task<> {
      co_await w::sleep_for(1s);
      EXPECT_EQ(sent, 16);  // as many as the mailbox holds
      co_await mine.run();
    };
    co_await w::when_all(send(), work_later());
    EXPECT_EQ(sent, 20);
  });
}

TEST(actor, tells_who_sends_after_it_was_closed) {
  w::test::run([]() -> w::task<> {
    account mine;
    mine.close();
    const auto paid = co_await w::as_result(mine.pay(1));
    EXPECT_EQ(paid.error(), w::errc::closed);
    const auto asked = co_await w::as_result(mine.balance());
    EXPECT_EQ(asked.error(), w::errc::closed);
    co_await mine.run();  // and ends
  });
}

struct is_stopped {
  account mine;
  long balance = -1;

  w::task<> use() {
    co_await mine.pay(1);
    co_await mine.pay(1);
    balance = co_await mine.balance();
    mine.close();
  }
  w::task<> run() { co_await w::when_all(mine.run(), use()); }
  void check() const { w::test::require(balance == -1 || balance == 2, "a payment was lost, or done twice"); }
};
// If its actor alone were stopped, who asks would wait for ever: a program stops them together.
constexpr w::test::sweep_options together{.each_alone = false};
TEST(actor, is_not_waited_for_when_it_is_stopped) { w::test::cancellation_sweep<is_stopped>(together, "actor"); }

}  // namespace

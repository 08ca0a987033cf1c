// The connection pool: no more connections than slots, one that was left in the middle of an answer is not lent again, and each
// slot comes back.
#include <gtest/gtest.h>
#include <weft/test.hpp>
#include <weft/weft.hpp>

#define main program
#include "../../examples/recipes/connection_pool.cpp"
#undef main

namespace {

w::task<> ask_in_line(connection_pool& from, int n, std::vector<int>& order) {
  const lease mine = co_await from.take();
  order.push_back(co_await mine.one->query(n));
}

TEST(connection_pool, lends_its_connections_to_who_waits_longest) {
  w::test::run([]() -> w::task<> {
    connection_pool pool{2};
    std::vector<int> order;
    std::vector<w::task<>> all;
    for (int n = 0; n != 6; ++n) all.push_back(ask_in_line(pool, n, order));
    co_await w::when_all(std::move(all));
    EXPECT_EQ(order, (std::vector{0, 1, 2, 3, 4, 5}));
    EXPECT_EQ(pool.made, 2);
    EXPECT_EQ(pool.free(), 2U);
    EXPECT_EQ(w::test::elapsed(), 60ms);  // 30 to connect, and three times ten
  });
}

TEST(connection_pool, closes_a_connection_that_was_left_in_the_middle) {
  w::test::run([]() -> w::task<> {
    connection_pool pool{1};
    const auto hangs = co_await ask(pool, 50);
    EXPECT_EQ(hangs.error(), w::errc::timed_out);
    EXPECT_EQ(pool.free(), 1U);
    const auto answers = co_await ask(pool, 1);
    EXPECT_TRUE(answers.has_value());
    EXPECT_EQ(pool.made, 2);
  });
}

TEST(connection_pool, has_its_slot_back_from_who_gave_up_while_it_connected) {
  w::test::run([]() -> w::task<> {
    connection_pool pool{1};
    const auto impatient = [&]() -> w::task<> { const lease mine = co_await pool.take(); };
    const auto ended = co_await w::as_result(w::timeout(10ms, impatient()));
    EXPECT_EQ(ended.error(), w::errc::timed_out);
    EXPECT_EQ(pool.free(), 1U);
    EXPECT_EQ(pool.made, 0);
  });
}

struct is_stopped {
  connection_pool pool{1};
  std::vector<int> order;
  w::task<> run() { co_await w::when_all(ask_in_line(pool, 1, order), ask_in_line(pool, 2, order)); }
  void check() const { w::test::require(pool.free() == 1, "a slot was lost"); }
};
TEST(connection_pool, loses_no_slot_wherever_it_is_stopped) {
  w::test::cancellation_sweep<is_stopped>("connection pool");
}

}  // namespace

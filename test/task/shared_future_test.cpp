// A future that many wait for: future::share().
#include <weft/combine.hpp>
#include <weft/fiber.hpp>
#include <weft/future.hpp>
#include <weft/scope.hpp>
#include <weft/shared_task.hpp>

#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "support/weft_test.hpp"

namespace {

using namespace std::chrono_literals;
using weft::as_result;
using weft::promise;
using weft::shared_task;
using weft::sync_wait;
using weft::task;

task<int> length(shared_task<std::string> of) { co_return int((co_await of).size()); }

WEFT_TEST("shared_future: that is shared gives one object to all, again and again") {
  promise<std::string> from;
  const shared_task<std::string> all = from.get_future().share(), other = all;
  EXPECT_FALSE(all.is_ready());
  auto sets = [](promise<std::string> one) -> task<> {
    one.set_value("four");
    co_return;
  };
  const auto [a, b, none] = co_await weft::when_all(length(all), length(other), sets(std::move(from)));
  EXPECT_EQ(a + b, 8);
  EXPECT_TRUE(other.is_ready());
  const std::string& first = co_await all;
  const std::string& second = co_await all;
  EXPECT_EQ(&first, &second);
}

TEST(shared_future, that_is_shared_is_waited_for_by_threads_fibers_and_tasks) {
  for (int round = 0; round != test::rounds(200); ++round) {
    promise<int> from;
    const shared_task<int> all = from.get_future().share();
    std::vector<std::jthread> threads;
    for (int i = 0; i != 3; ++i) threads.emplace_back([one = all] { EXPECT_EQ(sync_wait(one), 7); });
    threads.emplace_back([one = all] {
      auto in_fiber = [&] { EXPECT_EQ(weft::await(one), 7); };
      auto body = [&](weft::scope& s) -> task<> { co_await s.go(in_fiber); };
      sync_wait(weft::with_scope(body));
    });
    from.set_value(7);
    EXPECT_EQ(sync_wait(all), 7);
  }
}

WEFT_TEST("shared_future: that is shared, of void, of a reference, of what moves only, and ready before") {
  int object = 1;
  promise<> none;
  promise<int&> refers;
  promise<std::unique_ptr<int>> owns;
  const auto first = none.get_future().share();
  const auto second = refers.get_future().share();
  const auto third = owns.get_future().share();
  none.set_value();
  refers.set_value(object);
  owns.set_value(std::make_unique<int>(5));
  co_await first;
  EXPECT_EQ(&co_await second, &object);
  EXPECT_EQ(*co_await third, 5);
  EXPECT_EQ(co_await weft::make_ready_future(3).share(), 3);
}

WEFT_TEST("shared_future: that is shared gives a failure and a stop to all") {
  promise<int> fails, stops, breaks;
  const auto failed = fails.get_future().share();
  const auto stopped = stops.get_future().share();
  const auto broken = breaks.get_future().share();
  fails.set_exception(std::make_exception_ptr(std::runtime_error{"no"}));
  stops.set_stopped();
  {
    const auto gone = std::move(breaks);
  }
  for (int i = 0; i != 2; ++i) {
    EXPECT_NE((co_await as_result(failed)).exception(), nullptr);
    EXPECT_TRUE((co_await as_result(stopped)).is_stopped());
    EXPECT_EQ((co_await as_result(broken)).error(), weft::errc::broken_promise);
  }
}

WEFT_TEST("shared_future: whoever leaves a shared one, stops it for nobody") {
  promise<int> from;
  const auto all = from.get_future().share();
  EXPECT_EQ((co_await as_result(weft::timeout(0ms, all))).error(), weft::errc::timed_out);
  from.set_value(7);
  EXPECT_EQ(co_await all, 7);
}

TEST(shared_future, that_is_shared_may_be_dropped_before_it_is_set) {
  promise<int> from;
  {
    [[maybe_unused]] const auto dropped = from.get_future().share();
  }
  from.set_value(1);
  promise<int> unset;
  {
    [[maybe_unused]] const auto dropped = unset.get_future().share();
  }
}

}  // namespace

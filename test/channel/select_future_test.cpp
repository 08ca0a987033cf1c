// A future that stays as a case of a select. That it keeps its outcome where another case is chosen, select_cases_test has
// beside all others; sweep_channel_test stops such a select everywhere.
#include <weft/channel.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>
#include <weft/combine.hpp>
#include <weft/fiber.hpp>
#include <weft/future.hpp>
#include <weft/pool.hpp>
#include <weft/scope.hpp>
#include <weft/select.hpp>
#include <weft/test.hpp>

#include "support/weft_test.hpp"

namespace {

using namespace std::chrono_literals;
using weft::after;
using weft::as_result;
using weft::await;
using weft::channel;
using weft::future;
using weft::on;
using weft::on_receive;
using weft::otherwise;
using weft::promise;
using weft::scope;
using weft::select;
using weft::sync_wait;
using weft::task;
using weft::when_all;
using weft::with_scope;

TEST(select_of_future, may_be_asked_again_until_it_is_there) {
  weft::test::run([]() -> task<> {
    promise<std::unique_ptr<int>> set;
    future<std::unique_ptr<int>> answer = set.get_future();
    EXPECT_EQ((co_await select(on(answer), otherwise)).index, 1u);
    for (int i = 0; i != 3; ++i) EXPECT_EQ((co_await select(on(answer), after(1ms))).index, 1u);
    set.set_value(std::make_unique<int>(7));
    auto got = co_await select(on(answer), otherwise);
    EXPECT_EQ(got.index, 0u);
    EXPECT_EQ(*std::get<0>(got.value), 7);
    EXPECT_FALSE(answer);
  });
}

TEST(select_of_future, is_chosen_when_it_is_set) {
  weft::test::run([]() -> task<> {
    promise<int> number;
    promise<> done;
    int object = 3;
    promise<int&> place;
    auto first = number.get_future();
    auto second = done.get_future();
    auto third = place.get_future();
    auto sets = [&]() -> task<> {
      co_await weft::sleep_for(1ms);
      done.set_value();
      co_await weft::sleep_for(1ms);
      place.set_value(object);
      co_await weft::sleep_for(1ms);
      number.set_value(5);
    };
    auto waits = [&]() -> task<> {
      auto got = co_await select(on(first), on(second), on(third));
      EXPECT_EQ(got.index, 1u);
      auto then = co_await select(on(first), on(third));
      EXPECT_EQ(then.index, 1u);
      EXPECT_EQ(&std::get<1>(then.value).get(), &object);
      auto last = co_await select(on(first), after(1h));
      EXPECT_EQ(std::get<0>(last.value), 5);
    };
    co_await when_all(waits(), sets());
  });
}

TEST(select_of_future, fails_and_ends_stopped_as_it_was_set) {
  weft::test::run([]() -> task<> {
    channel<int> c{0};
    future<int> failed = weft::make_exceptional_future<int>(std::runtime_error{"as planned"});
    const auto thrown = co_await as_result(select(on(failed), otherwise));
    EXPECT_NE(thrown.exception(), nullptr);
    EXPECT_FALSE(failed) << "its failure was taken";
    future<int> broken;
    {
      promise<int> dropped;
      broken = dropped.get_future();
      EXPECT_EQ((co_await select(on(broken), otherwise)).index, 1u);
    }
    EXPECT_EQ((co_await as_result(select(on(broken), on_receive(c)))).error(), weft::errc::broken_promise);

    promise<int> told;
    future<int> stops = told.get_future();
    auto tells = [&]() -> task<> {
      co_await weft::sleep_for(1ms);
      told.set_stopped();
    };
    auto waits = [&]() -> task<> {
      EXPECT_TRUE((co_await as_result(select(on_receive(c), on(stops), after(1h)))).is_stopped());
      EXPECT_EQ(c.stats().waiting, 0u) << "the other cases have left";
    };
    co_await when_all(waits(), tells());
    EXPECT_TRUE((co_await as_result(select(on_receive(c), on(stops)))).is_stopped()) << "at once";
    EXPECT_TRUE((co_await as_result(select(on(stops), otherwise))).is_stopped());
    std::vector<weft::any_case> cases;
    cases.emplace_back(on(stops));
    EXPECT_TRUE((co_await as_result(select(std::move(cases)))).is_stopped());
    EXPECT_LT(weft::test::elapsed(), 1h);
  });
}

TEST(select_of_future, a_stop_of_the_select_leaves_it) {
  weft::test::run([]() -> task<> {
    promise<int> set;
    future<int> answer = set.get_future();
    const auto late = co_await as_result(
        weft::timeout(1ms, [](future<int>& one) -> task<> { co_await select(on(one), after(1h)); }(answer)));
    EXPECT_EQ(late.error(), weft::errc::timed_out);
    set.set_value(4);
    EXPECT_EQ(co_await std::move(answer), 4);
  });
}

TEST(select_of_future, in_a_fiber_on_a_thread_and_of_many) {
  std::vector<promise<int>> sets(3);
  std::vector<future<int>> answers;
  for (auto& one : sets) answers.push_back(one.get_future());
  const auto all = [&] {
    std::vector<weft::detail::future_case<int>> cases;
    for (auto& one : answers)
      if (one) cases.push_back(on(one));
    return cases;
  };
  std::jthread setter{[&] {
    std::this_thread::sleep_for(1ms);
    sets[1].set_value(10);
  }};
  const auto got = sync_wait(select(all()));
  EXPECT_EQ(got.index, 1u);
  EXPECT_EQ(got.value, 10);
  auto body = [&](scope& s) -> task<> {
    s.go([&] {
      const auto one = await(select(all()));
      EXPECT_EQ(one.index, 1u) << "of the two that are left";
      EXPECT_EQ(one.value, 20);
    });
    sets[2].set_value(20);
    co_return;
  };
  sync_wait(with_scope(body));
}

// Set on one thread while another one chooses, between two or with a time that has just passed, and is stopped.
TEST(select_of_future, set_on_another_thread_it_comes_once) {
  weft::pool p{{.threads = 3}};
  const int count = test::rounds(3000);
  std::atomic<int> chosen{0}, kept{0};
  auto body = [&](scope& s) -> task<> {
    for (int i = 0; i != count; ++i) {
      promise<std::unique_ptr<int>> set[2];
      future<std::unique_ptr<int>> answers[2] = {set[0].get_future(), set[1].get_future()};
      auto sets = [](promise<std::unique_ptr<int>> one, int after) -> task<> {
        for (int turns = 0; turns != after; ++turns) co_await weft::yield();
        one.set_value(std::make_unique<int>(1));
      };
      auto work = s.fork_on(p.executor(), sets, std::move(set[0]), i % 3);
      auto more = s.fork_on(p.executor(), sets, std::move(set[1]), i % 2);
      auto chooses = [&]() -> task<> {
        auto got = co_await select(on(answers[0]), on(answers[1]));
        std::visit([&](auto& value) { chosen += *value; }, got.value);
      };
      auto choosing = s.fork_on(p.executor(), chooses);
      if (i % 4 == 0) choosing.request_stop();
      static_cast<void>(co_await as_result(std::move(choosing)));
      co_await std::move(work);
      co_await std::move(more);
      for (auto& one : answers)
        if (one) kept += *co_await std::move(one);
    }
  };
  sync_wait(with_scope(body));
  EXPECT_EQ(chosen + kept, 2 * count);
  EXPECT_GT(chosen, 0);
}

TEST(select_of_future_death, waited_for_twice_or_empty) {
  const auto twice = [] {
    promise<int> set;
    future<int> answer = set.get_future();
    sync_wait(select(on(answer), on(answer)));
  };
  EXPECT_DEATH(twice(), "a future was waited for twice at once");
  future<int> none;
  EXPECT_DEATH(static_cast<void>(on(none)), "an empty future was used");
}

}  // namespace

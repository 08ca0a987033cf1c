#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <concepts>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>
#include <weft/combine.hpp>
#include <weft/executor.hpp>
#include <weft/future.hpp>
#include <weft/shared_task.hpp>

#include "support/weft_test.hpp"

namespace {

using weft::as_result;
using weft::errc;
using weft::future;
using weft::make_exceptional_future;
using weft::make_ready_future;
using weft::promise;
using weft::result;
using weft::stop_source;
using weft::stopped;
using weft::sync_wait;
using weft::task;

// The code of the weft::error that `body` throws.
template <class Body>
std::error_code code_of(Body body) {
  try {
    body();
  } catch (const weft::error& failed) {
    return failed.code();
  }
  return {};
}

// ---- what they hold -------------------------------------------------------------------------------------------------

static_assert(std::movable<promise<int>> && !std::copyable<promise<int>>);
static_assert(std::movable<future<int>> && !std::copyable<future<int>>);
static_assert(sizeof(promise<int>) == sizeof(void*) && sizeof(future<int>) == sizeof(void*));
static_assert(weft::awaitable<future<int>> && std::is_same_v<weft::await_result<future<int&>>, int&>);
template <class T, class... Value>
concept can_be_set_to = requires(promise<T> p, Value... value) { p.set_value(std::forward<Value>(value)...); };
static_assert(can_be_set_to<int&, int&> && !can_be_set_to<int&, int> && !can_be_set_to<const int&, int>,
              "no reference to a temporary");
static_assert(can_be_set_to<int, int> && !can_be_set_to<int> && !can_be_set_to<int, std::string>);
static_assert(can_be_set_to<void> && !can_be_set_to<void, int>);

WEFT_TEST("future: gives the value that its promise was set to, before or after it is asked for") {
  promise<int> early;
  early.set_value(1);
  EXPECT_EQ(co_await early.get_future(), 1);

  promise<std::string> late;
  std::jthread setter{[&] { late.set_value("a text that is longer than any small string"); }};
  EXPECT_EQ(co_await late.get_future(), "a text that is longer than any small string");
}

WEFT_TEST("future: holds nothing, references, what only moves and what has no default") {
  promise<> nothing;
  nothing.set_value();
  co_await nothing.get_future();

  int n = 0;
  promise<int&> reference;
  reference.set_value(n);
  int& got = co_await reference.get_future();
  EXPECT_EQ(&got, &n);

  promise<std::unique_ptr<int>> moves;
  moves.set_value(std::make_unique<int>(3));
  EXPECT_EQ(*co_await moves.get_future(), 3);

  struct point {
    explicit point(int x) : x{x} {}
    int x;
  };
  promise<point> made;
  made.set_value(4);
  EXPECT_EQ((co_await made.get_future()).x, 4);

  promise<std::vector<int>> braces;
  braces.set_value({1, 2, 3});
  EXPECT_EQ((co_await braces.get_future()).size(), 3u);
}

WEFT_TEST("future: throws what its promise was set to") {
  promise<int> failing;
  failing.set_exception(std::make_exception_ptr(std::runtime_error{"no"}));
  auto how = co_await as_result(failing.get_future());
  EXPECT_THROW(how.value(), std::runtime_error);
}

WEFT_TEST("future: whoever awaits what was set to stopped ends stopped") {
  promise<int> early;
  early.set_stopped();
  EXPECT_TRUE((co_await as_result(early.get_future())).is_stopped());

  promise<int> late;
  auto outcome = late.get_future();
  std::jthread setter{[&] { late.set_stopped(); }};
  bool went_on = false;
  auto waits = [](future<int> outcome, bool& went_on) -> task<> {
    co_await std::move(outcome);
    went_on = true;
  };
  EXPECT_TRUE((co_await as_result(waits(std::move(outcome), went_on))).is_stopped());
  EXPECT_FALSE(went_on);
}

WEFT_TEST("future: a promise takes a result of any kind") {
  promise<int> value, failure, stop;
  value.set_result(result<int>{std::in_place, 1});
  failure.set_result(result<int>{std::make_exception_ptr(1)});
  stop.set_result(result<int>{});
  EXPECT_EQ(co_await value.get_future(), 1);
  EXPECT_TRUE((co_await as_result(failure.get_future())).exception() != nullptr);
  EXPECT_TRUE((co_await as_result(stop.get_future())).is_stopped());

  const result<int> kept{std::in_place, 2};
  promise<int> set, tried;
  set.set_result(kept);
  EXPECT_TRUE(tried.try_set(kept));
  EXPECT_EQ(co_await set.get_future() + co_await tried.get_future(), 4);
}

// Its outcome is there all the same: whoever waits goes on.
WEFT_TEST("future: of a value whose move throws has that exception") {
  promise<test::fragile> promise;
  result<test::fragile> value{std::in_place, 1};
  promise.set_result(std::move(value));
  EXPECT_THROW((co_await as_result(promise.get_future())).value(), std::runtime_error);

  for (const int nth : {2, 3}) {  // out of the task, out of its result
    auto outcome = weft::as_future(test::fragile::made(nth));
    EXPECT_TRUE(outcome.is_ready());
    EXPECT_THROW((co_await as_result(std::move(outcome))).value(), std::runtime_error);
  }
}

TEST(future, destroys_what_it_holds_once) {
  std::atomic<int> alive = 0;
  {
    promise<test::counted> taken, left, dropped;
    taken.set_value(test::counted{alive});
    sync_wait(taken.get_future());
    left.set_value(test::counted{alive});
    auto outcome = left.get_future();
    dropped.set_value(test::counted{alive});
    EXPECT_EQ(alive, 3);
  }
  EXPECT_EQ(alive, 0);
}

// ---- broken contracts -----------------------------------------------------------------------------------------------

TEST(future, a_promise_that_is_dropped_is_broken) {
  future<int> outcome;
  {
    promise<int> dropped;
    outcome = dropped.get_future();
    EXPECT_FALSE(outcome.is_ready());
  }
  EXPECT_TRUE(outcome.is_ready());
  try {
    outcome.get();
    ADD_FAILURE();
  } catch (const weft::error& failed) {
    EXPECT_EQ(failed.code(), errc::broken_promise);
    EXPECT_STREQ(failed.what(), "future: the promise was destroyed before it was set");
  }
  promise<int> overwritten;
  outcome = overwritten.get_future();
  overwritten = promise<int>{};
  EXPECT_EQ(code_of([&] { outcome.get(); }), errc::broken_promise);
}

TEST(future, is_set_once) {
  promise<int> once;
  auto outcome = once.get_future();
  EXPECT_TRUE(once.try_set(result<int>{std::in_place, 1}));
  EXPECT_FALSE(once.try_set(result<int>{std::in_place, 2}));
  EXPECT_EQ(code_of([&] { once.set_value(2); }), errc::promise_already_set);
  EXPECT_EQ(code_of([&] { once.set_exception(nullptr); }), errc::promise_already_set);
  EXPECT_EQ(code_of([&] { once.set_stopped(); }), errc::promise_already_set);
  EXPECT_EQ(outcome.get(), 1);
  EXPECT_EQ(code_of([&] { once.set_value(2); }), errc::promise_already_set);
}

TEST(future, is_taken_once) {
  promise<int> one;
  auto outcome = one.get_future();
  EXPECT_EQ(code_of([&] { static_cast<void>(one.get_future()); }), errc::future_already_taken);
  one.set_value(1);
  EXPECT_EQ(code_of([&] { static_cast<void>(one.get_future()); }), errc::future_already_taken);
}

TEST(future, a_value_whose_constructor_throws_leaves_the_promise_unset) {
  struct picky {
    explicit picky(int n) {
      if (n < 0) throw std::invalid_argument{"negative"};
    }
  };
  promise<picky> once;
  auto outcome = once.get_future();
  EXPECT_THROW(once.set_value(-1), std::invalid_argument);
  EXPECT_FALSE(outcome.is_ready());
  once.set_value(1);
  EXPECT_TRUE(outcome.is_ready());
}

TEST(future, an_empty_one_ends_the_program_with_a_sentence) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  future<int> empty;
  EXPECT_FALSE(empty);
  EXPECT_DEATH(empty.get(), "an empty future was used");
  EXPECT_DEATH(static_cast<void>(empty.is_ready()), "an empty future was used");
  EXPECT_DEATH(sync_wait(std::move(empty)), "an empty future was used");
  promise<int> from;
  const promise<int> to = std::move(from);
  EXPECT_FALSE(from);
  EXPECT_TRUE(to);
  EXPECT_DEATH(from.set_value(1), "an empty promise was used");
}

// ---- on a plain thread ----------------------------------------------------------------------------------------------

TEST(future, blocks_a_thread_until_it_is_set) {
  promise<int> late;
  auto outcome = late.get_future();
  std::atomic<bool> set = false;
  std::jthread setter{[&] {
    std::this_thread::sleep_for(std::chrono::milliseconds{5});
    set = true;
    late.set_value(7);
  }};
  outcome.wait();
  EXPECT_TRUE(set);
  EXPECT_TRUE(outcome.is_ready());
  EXPECT_TRUE(outcome);
  outcome.wait();
  EXPECT_EQ(outcome.get(), 7);
  EXPECT_FALSE(outcome);
}

TEST(future, get_throws_stopped_and_wait_does_not) {
  promise<int> late;
  auto outcome = late.get_future();
  std::jthread setter{[&] { late.set_stopped(); }};
  outcome.wait();
  EXPECT_THROW(outcome.get(), stopped);
}

TEST(future, ready_and_failed_ones_are_made_at_once) {
  EXPECT_EQ(make_ready_future(7).get(), 7);
  EXPECT_EQ(make_ready_future(std::string{"text"}).get(), "text");
  make_ready_future().get();
  int n = 3;
  static_assert(std::is_same_v<decltype(make_ready_future(n)), future<int>>);
  EXPECT_THROW(make_exceptional_future<int>(std::runtime_error{"no"}).get(), std::runtime_error);
  EXPECT_THROW(make_exceptional_future(std::make_exception_ptr(1)).get(), int);
}

// ---- stops ----------------------------------------------------------------------------------------------------------

TEST(future, a_task_that_is_stopped_leaves_it) {
  promise<int> never;
  auto outcome = never.get_future();
  stop_source stop;
  std::jthread stopper{[&] {
    std::this_thread::sleep_for(std::chrono::milliseconds{2});
    stop.request_stop();
  }};
  EXPECT_THROW(sync_wait(std::move(outcome), stop.token()), stopped);
  never.set_value(1);  // in vain
}

TEST(future, a_task_that_was_stopped_before_does_not_wait) {
  promise<int> never;
  stop_source stop;
  stop.request_stop();
  EXPECT_THROW(sync_wait(never.get_future(), stop.token()), stopped);
}

TEST(future, what_is_ready_is_taken_in_spite_of_a_stop) {
  stop_source stop;
  stop.request_stop();
  EXPECT_EQ(sync_wait(make_ready_future(1), stop.token()), 1);
}

// ---- then -----------------------------------------------------------------------------------------------------------

TEST(future, then_goes_on_inside_the_call_that_sets_it) {
  promise<int> late;
  bool called = false;
  auto next = late.get_future().then([&](int n) {
    called = true;
    return n + 1;
  });
  static_assert(std::is_same_v<decltype(next), future<int>>);
  EXPECT_FALSE(called);
  late.set_value(1);
  EXPECT_TRUE(called);
  EXPECT_EQ(next.get(), 2);
}

TEST(future, then_goes_on_at_once_where_it_is_ready) {
  EXPECT_EQ(make_ready_future(1).then([](int n) { return std::to_string(n); }).get(), "1");
  int seen = 0;
  make_ready_future(2).then([&](int n) { seen = n; }).get();
  EXPECT_EQ(seen, 2);
  make_ready_future().then([&] { seen = 3; }).get();
  EXPECT_EQ(seen, 3);
}

TEST(future, then_unwraps_tasks_and_futures) {
  auto twice = [](int n) -> task<int> { co_return 2 * n; };
  EXPECT_EQ(make_ready_future(1).then(twice).then([](int n) { return make_ready_future(n + 1); }).get(), 3);
  promise<int> inner;
  auto outcome = make_ready_future().then([&] { return inner.get_future(); });
  EXPECT_FALSE(outcome.is_ready());
  inner.set_value(5);
  EXPECT_EQ(outcome.get(), 5);
}

TEST(future, then_passes_failures_and_stops_on) {
  bool called = false;
  auto call = [&](int n) {
    called = true;
    return n;
  };
  EXPECT_THROW(make_exceptional_future<int>(std::runtime_error{"no"}).then(call).get(), std::runtime_error);
  promise<int> stop;
  stop.set_stopped();
  EXPECT_THROW(stop.get_future().then(call).get(), stopped);
  EXPECT_FALSE(called);
  EXPECT_THROW(make_ready_future(1).then([](int) { throw 1; }).get(), int);
}

TEST(future, then_gives_the_result_to_who_takes_one) {
  auto kind = [](result<int> how) { return how ? "value" : how.is_stopped() ? "stopped" : "exception"; };
  promise<int> stop;
  stop.set_stopped();
  EXPECT_STREQ(make_ready_future(1).then(kind).get(), "value");
  EXPECT_STREQ(make_exceptional_future<int>(1).then(kind).get(), "exception");
  EXPECT_STREQ(stop.get_future().then(kind).get(), "stopped");
}

TEST(future, then_goes_on_on_an_executor) {
  weft::manual_executor pump;
  promise<int> late;
  bool called = false;
  auto next = late.get_future().then(pump, [&](int n) {
    called = true;
    return n + 1;
  });
  pump.run_all();
  late.set_value(1);
  EXPECT_FALSE(called);
  pump.run_all();
  EXPECT_TRUE(called);
  EXPECT_EQ(next.get(), 2);

  auto ready = make_ready_future(1).then(pump, [](int n) { return n; });
  EXPECT_FALSE(ready.is_ready());
  pump.run_all();
  EXPECT_TRUE(ready.is_ready());
}

TEST(future, a_long_chain_of_thens_does_not_grow_the_stack) {
  test::on_small_stack([] {
    promise<int> first;
    auto last = first.get_future();
    const int links = test::rounds(10'000);
    for (int i = 0; i < links; ++i) last = last.then([](int n) { return n + 1; });
    first.set_value(0);
    EXPECT_EQ(last.get(), links);
  });
}

// ---- tasks and futures ----------------------------------------------------------------------------------------------

TEST(future, a_task_becomes_one) {
  test::gate door;
  auto enter = [](test::gate& door) -> task<int> {
    co_await door;
    co_return 7;
  };
  auto outcome = weft::as_future(enter(door));
  EXPECT_FALSE(outcome.is_ready());
  door.open();
  EXPECT_EQ(outcome.get(), 7);

  weft::new_thread_executor threads;
  EXPECT_EQ(weft::as_future(threads, enter(door)).get(), 7);

  test::gate closed;
  stop_source stop;
  auto stops = weft::as_future(enter(closed), stop.token());
  stop.request_stop();
  EXPECT_THROW(stops.get(), stopped);
}

WEFT_TEST("future: when_all takes futures, side by side and in a range") {
  promise<int> a;
  promise<> b;
  std::jthread setter{[&] {
    b.set_value();
    a.set_value(1);
  }};
  auto both = co_await weft::when_all(a.get_future(), b.get_future(), make_ready_future(std::string{"text"}));
  EXPECT_EQ(std::get<0>(both), 1);
  EXPECT_EQ(std::get<2>(both), "text");

  std::vector<future<int>> many;
  for (int i = 0; i < 3; ++i) many.push_back(make_ready_future(i));
  auto all = co_await weft::when_all(std::move(many));
  EXPECT_EQ(all, (std::vector{0, 1, 2}));
}

WEFT_TEST("future: when_all of futures throws the first failure") {
  std::vector<future<int>> many;
  many.push_back(make_ready_future(1));
  many.push_back(make_exceptional_future<int>(std::runtime_error{"second"}));
  EXPECT_THROW((co_await as_result(weft::when_all(std::move(many)))).value(), std::runtime_error);
}

// ---- threads --------------------------------------------------------------------------------------------------------

// Each number goes through a promise that another thread sets while this one starts to wait.
TEST(future, is_set_while_it_is_awaited) {
  const int rounds = test::rounds(20'000);
  std::atomic<promise<int>*> to_set = nullptr;
  std::jthread setter{[&] {
    for (int i = 0; i < rounds; ++i) {
      promise<int>* mine = nullptr;
      test::until([&] { return (mine = to_set.exchange(nullptr)) != nullptr; });
      mine->set_value(i);
      delete mine;
    }
  }};
  auto body = [](std::atomic<promise<int>*>& to_set, int rounds) -> task<> {
    for (int i = 0; i < rounds; ++i) {
      auto* mine = new promise<int>;
      auto outcome = mine->get_future();
      to_set = mine;
      EXPECT_EQ(co_await std::move(outcome), i);
    }
  };
  sync_wait(body(to_set, rounds));
}

// A stop and a set race for one wait: the value or the stop, never both, never neither.
TEST(future, is_set_while_its_task_is_stopped) {
  const int rounds = test::rounds(5'000);
  std::atomic<int> turn = 0, done = 0;
  std::unique_ptr<promise<int>> value;
  std::unique_ptr<stop_source> stop;
  auto racer = [&](auto act) {
    return std::jthread{[&, act] {
      for (int i = 1; i <= rounds; ++i) {
        test::until([&] { return turn.load() == i; });
        for (int spin = i % 64; spin > 0; --spin) std::atomic_signal_fence(std::memory_order_seq_cst);
        act(i);
        ++done;
      }
    }};
  };
  int values = 0, stops = 0;
  {
    auto setter = racer([&](int i) { value->set_value(i); });
    auto stopper = racer([&](int) { stop->request_stop(); });
    for (int i = 1; i <= rounds; ++i) {
      value = std::make_unique<promise<int>>();
      stop = std::make_unique<stop_source>();
      auto outcome = value->get_future();
      turn = i;
      try {
        EXPECT_EQ(sync_wait(std::move(outcome), stop->token()), i);
        ++values;
      } catch (const stopped&) {
        ++stops;
      }
      test::until([&] { return done.load() == 2 * i; });
    }
  }
  EXPECT_EQ(values + stops, rounds);
}

TEST(future, of_many_who_set_it_one_succeeds) {
  const int rounds = test::rounds(1'000);
  for (int i = 0; i < rounds; ++i) {
    promise<int> contested;
    auto outcome = contested.get_future();
    std::atomic<int> winners = 0, winner = -1;
    {
      std::vector<std::jthread> setters;
      for (int n = 0; n < 3; ++n)
        setters.emplace_back([&, n] {
          if (contested.try_set(result<int>{std::in_place, n})) ++winners, winner = n;
        });
    }
    EXPECT_EQ(winners, 1);
    EXPECT_EQ(outcome.get(), winner);
  }
}

TEST(future, both_ends_may_be_dropped_at_once) {
  const int rounds = test::rounds(2'000);
  std::atomic<int> alive = 0;
  for (int i = 0; i < rounds; ++i) {
    promise<test::counted> mine;
    auto outcome = mine.get_future();
    std::jthread setter{[mine = std::move(mine), &alive]() mutable { mine.set_value(test::counted{alive}); }};
    if (i % 2 == 0) {
      future<test::counted> dropped = std::move(outcome);
    } else {
      outcome.wait();
    }
  }
  EXPECT_EQ(alive, 0);
}

// ---- start ----------------------------------------------------------------------------------------------------------

TEST(start, takes_whatever_can_be_awaited) {
  weft::promise<int> promise;
  int got = 0;
  weft::start(promise.get_future(), [&](weft::result<int> how) { got = *how; });
  EXPECT_EQ(got, 0);
  promise.set_value(3);
  EXPECT_EQ(got, 3);

  int both = 0;
  auto number = [](int n) -> weft::task<int> { co_return n; };
  weft::start(weft::when_all(number(1), number(2)),
              [&](weft::result<std::tuple<int, int>> how) { both = std::get<0>(*how) + std::get<1>(*how); });
  EXPECT_EQ(both, 3);

  weft::shared_task<int> shared{number(4)};
  weft::manual_executor loop;
  int seen = 0;
  weft::start(loop, shared, [&](weft::result<const int&> how) { seen = *how; });
  EXPECT_EQ(seen, 0);
  loop.run_all();
  EXPECT_EQ(seen, 4);

  weft::stop_source stop;
  bool stopped = false;
  weft::start(
      weft::sleep_for(std::chrono::hours{1}), [&](weft::result<void> how) { stopped = how.is_stopped(); },
      stop.token());
  stop.request_stop();
  EXPECT_TRUE(stopped);
}

}  // namespace

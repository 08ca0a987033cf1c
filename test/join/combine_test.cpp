#include <weft/combine.hpp>
#include <weft/future.hpp>

#include <algorithm>
#include <chrono>
#include <list>
#include <memory>
#include <ranges>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/tasks.hpp"
#include "support/timed_root.hpp"
#include "support/weft_test.hpp"

namespace {

using test::after;
using test::fail;
using test::give;
using test::open;
using weft::as_result;
using weft::result;
using weft::sync_wait;
using weft::task;
using weft::when_all;

task<> nothing() { co_return; }
task<int&> refer(int& object) { co_return object; }
task<std::unique_ptr<int>> make(int value) { co_return std::make_unique<int>(value); }

struct cannot_be_default {
  explicit cannot_be_default(int value) : value{value} {}
  int value;
};
task<cannot_be_default> wrap(int value) { co_return cannot_be_default{value}; }

WEFT_TEST("when_all: gives a tuple, in which void is monostate and a reference a wrapper") {
  int object = 3;
  auto [one, none, reference, owner, odd] = co_await when_all(give(1), nothing(), refer(object), make(4), wrap(5));
  static_assert(std::is_same_v<decltype(none), std::monostate>);
  EXPECT_EQ(one, 1);
  EXPECT_EQ(&reference.get(), &object);
  EXPECT_EQ(*owner, 4);
  EXPECT_EQ(odd.value, 5);
}

WEFT_TEST("when_all: of none is an empty tuple, of an empty vector an empty vector") {
  EXPECT_EQ(std::tuple_size_v<decltype(sync_wait(when_all()))>, 0U);
  EXPECT_EQ(co_await when_all(), std::tuple<>{});
  EXPECT_TRUE((co_await when_all(std::vector<task<int>>{})).empty());
}

WEFT_TEST("when_all: a range gives a vector, in order") {
  std::vector<task<int>> some;
  for (int i = 0; i != 100; ++i) some.push_back(give(i));
  const std::vector<int> values = co_await when_all(std::move(some));
  int expected = 0;
  for (const int value : values) EXPECT_EQ(value, expected++);
  EXPECT_EQ(expected, 100);
}

WEFT_TEST("when_all: ranges of voids, references, and of what moves only") {
  int object = 0;
  std::vector<task<>> voids;
  std::vector<task<int&>> references;
  std::list<task<std::unique_ptr<int>>> owners;
  for (int i = 0; i != 3; ++i) {
    voids.push_back(nothing());
    references.push_back(refer(object));
    owners.push_back(make(i));
  }
  EXPECT_EQ((co_await when_all(std::move(voids))).size(), 3U);
  for (int& reference : co_await when_all(std::move(references))) EXPECT_EQ(&reference, &object);
  EXPECT_EQ(*(co_await when_all(std::move(owners)))[2], 2);
}

WEFT_TEST("when_all: a view is awaited as it gives its elements") {
  const std::vector<int> numbers{1, 2, 3};
  auto tasks = numbers | std::views::transform(give);
  EXPECT_EQ(co_await when_all(tasks), numbers);
}

WEFT_TEST("when_all: values go where they are wanted, of ranges of any length that know it or do not") {
  const auto wanted = [](int) { return true; };
  for (int count = 0; count != 70; ++count) {
    const auto numbers = std::views::iota(0, count);
    std::vector<int> expected(numbers.begin(), numbers.end()), values(static_cast<std::size_t>(count), -1);
    auto sized = numbers | std::views::transform(give);
    EXPECT_TRUE(co_await when_all(sized, values.begin()) == values.end());
    EXPECT_EQ(values, expected);

    auto unsized = numbers | std::views::filter(wanted) | std::views::transform(give);
    std::vector<int> appended;
    co_await when_all(unsized, std::back_inserter(appended));
    EXPECT_EQ(appended, expected);
    EXPECT_EQ(co_await when_all(unsized), expected);

    int ran = 0;
    auto silent = numbers | std::views::transform([&](int) -> task<> {
                    ++ran;
                    co_return;
                  });
    co_await when_all(silent, std::ignore);
    EXPECT_EQ(ran, count);
  }
}

// Appends, and shares something that counts its owners.
struct appends {
  using difference_type = std::ptrdiff_t;
  std::shared_ptr<std::vector<int>> to;
  appends& operator*() { return *this; }
  appends& operator++() { return *this; }
  appends operator++(int) { return *this; }
  appends& operator=(int value) {
    to->push_back(value);
    return *this;
  }
};

WEFT_TEST("when_all: the iterator that says where ends as often as it was copied") {
  const auto child = [](int n) -> task<int> {
    if (n == 5) throw std::runtime_error{"the fifth"};
    co_return n;
  };
  for (const int count : {4, 40}) {
    appends into{std::make_shared<std::vector<int>>()};
    auto all = std::views::iota(0, count) | std::views::transform(child);
    const auto how = co_await as_result(when_all(all, into));
    EXPECT_EQ(how.has_value(), count == 4);
    EXPECT_EQ(into.to.use_count(), count == 4 ? 2 : 1);
    EXPECT_EQ(into.to->size(), count == 4 ? 4u : 0u);
    static_cast<void>(co_await as_result(when_all(all, into)));
    EXPECT_EQ(into.to.use_count(), count == 4 ? 2 : 1);
  }
}

WEFT_TEST("when_all: of a range that fails no value goes anywhere, and all have ended") {
  for (const int count : {3, 40}) {
    int ended = 0;
    const auto child = [&](int n) -> task<int> {
      ++ended;
      if (n == 2) throw std::runtime_error{"the third"};
      co_return n;
    };
    auto all = std::views::iota(0, count) | std::views::transform(child);
    std::vector<int> values;
    const auto failed = co_await as_result(when_all(all, std::back_inserter(values)));
    EXPECT_TRUE(failed.exception() != nullptr);
    EXPECT_TRUE(values.empty());
    EXPECT_EQ(ended, count);
    EXPECT_TRUE((co_await as_result(when_all(all, std::ignore))).exception() != nullptr);
  }
}

WEFT_TEST("when_all: of a range that says that it has no end there is no memory, and nothing runs") {
  bool ran = false;
  auto all = std::views::iota(std::size_t{0}, ~std::size_t{0}) | std::views::transform([&](std::size_t) -> task<> {
               ran = true;
               co_return;
             });
  EXPECT_THROW(static_cast<void>(when_all(all, std::ignore)), std::bad_alloc);
  EXPECT_FALSE(ran);
  co_return;
}

WEFT_TEST("when_all: what a range throws is thrown, and the children that it gave never ran") {
  std::atomic<int> alive{0};
  for (const int at : {0, 5, 20}) {
    bool ran = false;
    const auto child = [&](test::counted) -> task<> {
      ran = true;
      co_return;
    };
    auto all =
        std::views::iota(0, 30) | std::views::filter([](int) { return true; }) | std::views::transform([&](int n) {
          if (n == at) throw std::runtime_error{"no more"};
          return child(test::counted{alive});
        });
    EXPECT_THROW(static_cast<void>(when_all(all, std::ignore)), std::runtime_error);
    EXPECT_FALSE(ran);
    EXPECT_EQ(alive, 0);
    const auto unawaited = [&] {
      auto some = std::views::iota(0, at) | std::views::transform([&](int) { return child(test::counted{alive}); });
      auto first = when_all(some);
      EXPECT_EQ(alive, at);
      [[maybe_unused]] auto second = std::move(first);
      EXPECT_EQ(alive, at);
    };
    unawaited();
    EXPECT_EQ(alive, 0);
  }
  co_return;
}

WEFT_TEST("when_all: awaits what is no task") {
  test::gate first, second;
  first.open(), second.open();
  auto both = co_await when_all(first.pass(), second.pass(), give(1));
  EXPECT_EQ(std::get<2>(both), 1);
}

WEFT_TEST("when_all: a child that waits lets its siblings start") {
  test::gate door;
  auto [waited, opened] = co_await when_all(after(door, 1), open(door, 2));
  EXPECT_EQ(waited, 1);
  EXPECT_EQ(opened, 2);
}

WEFT_TEST("when_all: the records of children that ran through serve those that wait") {
  test::gate door;
  std::vector<task<int>> some;
  for (int i = 0; i != 50; ++i) some.push_back(i % 3 == 1 ? after(door, i) : give(i));
  some.push_back(open(door, 50));
  const std::vector<int> values = co_await when_all(std::move(some));
  int expected = 0;
  for (const int value : values) EXPECT_EQ(value, expected++);
}

WEFT_TEST("when_all: all end before the first failure, in the order of the arguments, is thrown") {
  test::gate door;
  bool ended = false;
  auto slow = [&]() -> task<int> {
    co_await door;
    ended = true;
    throw std::runtime_error{"late, but first in order"};
  };
  const auto all = co_await as_result(when_all(slow(), fail("early"), open(door, 1)));
  EXPECT_TRUE(ended);
  try {
    (void)all.value();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const std::runtime_error& thrown) {
    EXPECT_STREQ(thrown.what(), "late, but first in order");
  }
}

TEST(when_all, a_value_that_cannot_be_moved_out_is_a_failure) {
  struct throws_when_moved {
    throws_when_moved() = default;
    throws_when_moved(throws_when_moved&&) { throw std::runtime_error{"moved"}; }
    throws_when_moved(const throws_when_moved&) = default;
  };
  static auto give_it = []() -> task<throws_when_moved> {
    const throws_when_moved one;
    co_return one;
  };
  EXPECT_THROW(sync_wait(when_all(give_it(), give(1))), std::runtime_error);
}

TEST(when_all, a_stop_goes_to_all_children_and_joins_them) {
  test::gate never;
  std::atomic<int> alive{0};
  weft::stop_source source;
  auto wait = [&](task<int> inner) -> task<int> {
    const test::counted guard{alive};
    co_return co_await std::move(inner);
  };
  bool stopped = false;
  weft::start(
      when_all(wait(after(never, 1)), wait(after(never, 2))) | weft::then([](auto&&) { return 0; }),
      [&](result<int> how) { stopped = how.is_stopped(); }, source.token());
  EXPECT_EQ(never.waiting(), 2);
  EXPECT_EQ(alive, 2);
  source.request_stop();
  EXPECT_TRUE(stopped);
  EXPECT_EQ(alive, 0);
  EXPECT_EQ(never.waiting(), 0);
}

TEST(when_all, a_failure_is_told_before_a_stop) {
  test::gate never;
  weft::stop_source source;
  std::exception_ptr failure;
  auto both = [&]() -> task<int> {
    auto [a, b] = co_await when_all(after(never, 1), fail("broken"));
    co_return a + b;
  };
  weft::start(both(), [&](result<int> how) { failure = how.exception(); }, source.token());
  source.request_stop();
  EXPECT_TRUE(failure);
}

task<long> tree(int levels) {
  if (levels == 0) co_return 1;
  auto [left, right] = co_await when_all(tree(levels - 1), tree(levels - 1));
  co_return left + right;
}
task<long> tree_behind(test::gate& door, int levels) {
  if (levels == 0) co_return co_await after(door, 1);
  auto [left, right] = co_await when_all(tree_behind(door, levels - 1), tree_behind(door, levels - 1));
  co_return left + right;
}
task<long> line(int levels) {
  if (levels == 0) co_return 0;
  auto [below] = co_await when_all(line(levels - 1));
  co_return below + 1;
}

WEFT_TEST("when_all: nests, and what waits at the leaves joins upward") {
  EXPECT_EQ(co_await tree(12), 4096);
  test::gate door;
  auto [sum, opened] = co_await when_all(tree_behind(door, 8), open(door, 0));
  EXPECT_EQ(sum, 256);
}

TEST(when_all, needs_no_stack_in_depth_or_in_a_loop) {
  test::on_small_stack([] { EXPECT_EQ(sync_wait(line(100'000)), 100'000); });
  test::on_small_stack([] {
    auto loop = []() -> task<long> {
      long sum = 0;
      for (int i = 0; i != 200'000; ++i) {
        test::gate door;  // the first waits each time, and the second wakes it
        auto [a, b] = co_await when_all(after(door, 1), open(door, 1));
        sum += a + b;
      }
      co_return sum;
    };
    EXPECT_EQ(sync_wait(loop()), 400'000);
  });
}

TEST(when_all, children_end_on_other_threads_while_the_parent_is_stopped) {
  for (int round = 0; round != test::rounds(2'000); ++round) {
    test::gate first, second;
    weft::stop_source source;
    std::atomic<bool> ended{false};
    auto both = [&]() -> task<int> {
      auto [a, b] = co_await when_all(after(first, 1), after(second, 2));
      co_return a + b;
    };
    weft::start(
        both(),
        [&](result<int> how) {
          EXPECT_TRUE(how.is_stopped() || how.value() == 3);
          ended = true;
        },
        source.token());
    std::thread opener{[&] {
      first.open();
      second.open();
    }};
    std::thread stopper{[&] { source.request_stop(); }};
    opener.join();
    stopper.join();
    EXPECT_TRUE(ended);
  }
}

// ---- windowed -------------------------------------------------------------------------------------------------------

using weft::windowed;

// How many run at once, and how many have been made.
struct load {
  int running = 0, most = 0, made = 0;
  std::vector<int> order{};

  task<int> work(std::chrono::milliseconds d, int value) {
    ++made;
    return run(d, value);
  }

 private:
  task<int> run(std::chrono::milliseconds d, int value) {
    most = std::max(most, ++running);
    order.push_back(value);
    co_await weft::sleep_for(d);
    --running;
    co_return value;
  }
};

TEST(windowed, runs_so_many_at_once_and_gives_values_in_order) {
  test::virtual_clock time;
  load l;
  const std::vector<int> ms{5, 1, 1, 1, 1, 3};
  auto tasks = ms | std::views::transform([&](int d) { return l.work(std::chrono::milliseconds{d}, d); });
  auto all = [&]() -> task<> {
    const auto values = co_await windowed(2, tasks);
    EXPECT_EQ(values, ms);
  };
  EXPECT_TRUE(test::run_timed(time, all()));
  EXPECT_EQ(l.most, 2);
  EXPECT_EQ(l.order, ms);
  EXPECT_EQ(time.elapsed(), std::chrono::milliseconds{7});
}

TEST(windowed, takes_an_element_when_its_turn_has_come) {
  test::virtual_clock time;
  load l;
  auto one = [&](int value) { return l.work(std::chrono::milliseconds{1}, value); };
  auto numbers = std::views::iota(0, 10);
  auto all = [&]() -> task<> {
    auto tasks = numbers | std::views::transform(one);
    EXPECT_EQ((co_await (tasks | windowed(3))).size(), 10U);
  };
  int seen = 0;
  EXPECT_TRUE(test::run_timed(time, all(), [&](auto&) { EXPECT_LE(l.made, seen += 3); }));
  EXPECT_EQ(l.made, 10);
}

WEFT_TEST("windowed: containers, voids, references, what moves only, and nothing at all") {
  std::vector<task<std::unique_ptr<int>>> owners;
  std::list<task<int&>> references;
  std::vector<task<>> voids;
  int object = 0;
  for (int i = 0; i != 5; ++i) {
    owners.push_back(make(i));
    references.push_back(refer(object));
    voids.push_back(nothing());
  }
  EXPECT_EQ(*(co_await windowed(2, std::move(owners)))[4], 4);
  for (int& reference : co_await windowed(9, std::move(references))) EXPECT_EQ(&reference, &object);
  EXPECT_EQ((co_await windowed(1, std::move(voids))).size(), 5U);
  EXPECT_TRUE((co_await windowed(3, std::vector<task<int>>{})).empty());
}

TEST(windowed, after_a_failure_no_others_start_and_those_that_run_are_joined) {
  test::virtual_clock time;
  load l;
  auto one = [&](int value) -> task<int> {
    if (value == 2) return fail("two");
    return l.work(std::chrono::milliseconds{5 - value}, value);
  };
  auto numbers = std::views::iota(0, 10);
  auto all = [&]() -> task<> {
    auto tasks = numbers | std::views::transform(one);
    co_await windowed(3, tasks);
  };
  EXPECT_THROW(test::run_timed(time, all()).value(), std::runtime_error);
  EXPECT_EQ(l.order, (std::vector<int>{0, 1}));
  EXPECT_EQ(l.running, 0);
}

TEST(windowed, what_the_range_throws_is_thrown_after_those_that_run) {
  test::virtual_clock time;
  load l;
  auto one = [&](int value) -> task<int> {
    if (value == 1) throw std::out_of_range{"no such element"};
    return l.work(std::chrono::milliseconds{1}, value);
  };
  auto numbers = std::views::iota(0, 10);
  auto all = [&]() -> task<> {
    auto tasks = numbers | std::views::transform(one);
    co_await windowed(2, tasks);
  };
  EXPECT_THROW(test::run_timed(time, all()).value(), std::out_of_range);
  EXPECT_EQ(l.order, (std::vector<int>{0}));
  EXPECT_EQ(l.running, 0);
}

TEST(windowed, a_stop_before_during_and_of_one_by_itself) {
  test::virtual_clock time;
  load l;
  auto numbers = std::views::iota(0, 10);
  auto one = [&](int value) { return l.work(std::chrono::milliseconds{1}, value); };
  auto all = [&]() -> task<> {
    auto tasks = numbers | std::views::transform(one);
    co_await windowed(2, tasks);
  };
  EXPECT_TRUE(test::run_timed(time, all(), [](auto& root) { root.request_stop(); }).is_stopped());
  EXPECT_EQ(l.made, 2);  // the stop came when they waited
  EXPECT_EQ(time.armed(), 0U);

  EXPECT_TRUE(test::run_stopped(time, all()).is_stopped());
  EXPECT_EQ(l.made, 2);

  auto by_itself = []() -> task<> {
    std::vector<weft::future<int>> futures;
    weft::promise<int> first, second;
    futures.push_back(first.get_future());
    futures.push_back(second.get_future());
    first.set_stopped();
    second.set_value(1);
    co_await windowed(1, std::move(futures));
  };
  EXPECT_TRUE(test::run_timed(time, by_itself()).is_stopped());
}

TEST(windowed, starts_no_others_after_a_stop_though_none_ever_waits) {
  for (const std::size_t width : {1U, 3U}) {
    weft::stop_source stop;
    int started = 0;
    auto one = [&](int) -> task<int> {
      if (++started == 4) stop.request_stop();
      co_return started;
    };
    EXPECT_THROW(weft::sync_wait(windowed(width, std::views::iota(0, 10) | std::views::transform(one)), stop.token()),
                 weft::stopped);
    EXPECT_EQ(started, 4);

    weft::stop_source too_late;  // the last element says stop: there is nothing left to be stopped
    auto last = [&](int value) -> task<int> {
      too_late.request_stop();
      co_return value;
    };
    EXPECT_EQ(weft::sync_wait(windowed(width, std::views::iota(0, 1) | std::views::transform(last)), too_late.token()),
              std::vector<int>{0});
  }
}

TEST(windowed, on_several_threads) {
  for (int round = 0; round != test::rounds(300); ++round) {
    weft::new_thread_executor threads;
    std::atomic<int> running{0}, most{0};
    auto one = [&](int value) -> task<int> {
      co_await weft::resume_on(threads);
      const int now = ++running;
      for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
      }
      co_await weft::yield();
      --running;
      co_return value;
    };
    auto numbers = std::views::iota(0, 12);
    auto tasks = numbers | std::views::transform(one);
    std::atomic<int> ended{0};
    auto all = [&]() -> task<> {
      const auto values = co_await windowed(3, tasks);
      EXPECT_TRUE(std::ranges::equal(values, numbers));
    };
    weft::start(all(), [&](result<void> how) {
      EXPECT_TRUE(how);
      ++ended;
    });
    test::until([&] { return ended == 1; });
    EXPECT_LE(most, 3);
  }
}

}  // namespace

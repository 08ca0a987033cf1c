#include <weft/clock.hpp>
#include <weft/combine.hpp>
#include <weft/future.hpp>
#include <weft/on_scope_exit.hpp>
#include <weft/sync.hpp>

#include <list>
#include <memory>
#include <mutex>
#include <ranges>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/tasks.hpp"
#include "support/timed_root.hpp"
#include "support/weft_test.hpp"

namespace {

using namespace std::chrono_literals;
using test::after;
using test::fail;
using test::give;
using test::open;
using test::run_timed;
using test::virtual_clock;
using weft::as_result;
using weft::result;
using weft::sleep_for;
using weft::sync_wait;
using weft::task;
using weft::when;
using weft::when_any;
using weft::when_some;

task<> nothing() { co_return; }
task<int&> refer(int& object) { co_return object; }
task<std::unique_ptr<int>> make(int value) { co_return std::make_unique<int>(value); }
task<int> nap(std::chrono::milliseconds d, int value) {
  co_await sleep_for(d);
  co_return value;
}
task<int> fail_after(std::chrono::milliseconds d, const char* why) {
  co_await sleep_for(d);
  throw std::runtime_error{why};
}
task<int> stopped_by_itself() {
  weft::promise<int> never;
  auto outcome = never.get_future();
  never.set_stopped();
  co_return co_await std::move(outcome);
}
// Ends with `value` when it is stopped.
task<int> stubborn(test::gate& door, int value) {
  (void)co_await as_result(door.pass());
  co_return value;
}
task<int> fails_when_stopped(test::gate& door) {
  (void)co_await as_result(door.pass());
  throw std::runtime_error{"in its cleanup"};
}

std::string what(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& thrown) {
    return thrown.what();
  }
}

// Collects the failures that nobody gets, while it lives.
class lost_errors {
 public:
  lost_errors() : before_{weft::set_lost_error_handler(note)} { list().clear(); }
  lost_errors(const lost_errors&) = delete;
  ~lost_errors() { weft::set_lost_error_handler(before_); }

  static std::vector<std::string>& list() {
    static std::vector<std::string> all;
    return all;
  }

 private:
  static void note(const char* operation, const std::exception_ptr& failure) noexcept {
    static std::mutex lock;
    const std::lock_guard guard{lock};
    list().push_back(std::string{operation} + ": " + what(failure));
  }
  weft::lost_error_handler before_;
};

// ---- when_any: what it gives ------------------------------------------------------------------------------------------

WEFT_TEST("when_any: gives an index and a variant, in which void is monostate and a reference a wrapper") {
  test::gate never;
  int object = 3;
  auto first = co_await when_any(refer(object), nothing(), make(1));
  static_assert(std::is_same_v<decltype(first.value),
                               std::variant<std::reference_wrapper<int>, std::monostate, std::unique_ptr<int>>>);
  EXPECT_EQ(first.index, 0U);
  EXPECT_EQ(&std::get<0>(first.value).get(), &object);

  auto [second, none] = co_await when_any(after(never, 1), nothing(), make(1));
  EXPECT_EQ(second, 1U);
  EXPECT_EQ(none.index(), 1U);

  auto [third, owner] = co_await when_any(after(never, 1), never.pass(), make(7));
  EXPECT_EQ(third, 2U);
  EXPECT_EQ(*std::get<2>(owner), 7);

  auto [only, value] = co_await when_any(give(4));
  EXPECT_EQ(only, 0U);
  EXPECT_EQ(std::get<0>(value), 4);
}

WEFT_TEST("when_any: of a range gives an index and the value") {
  test::gate never;
  std::vector<task<int>> some;
  some.push_back(after(never, 0));
  some.push_back(give(10));
  some.push_back(give(20));
  auto [index, value] = co_await when_any(std::move(some));
  EXPECT_EQ(index, 1U);
  EXPECT_EQ(value, 10);

  int object = 0;
  std::list<task<int&>> references;
  references.push_back(refer(object));
  EXPECT_EQ(&(co_await when_any(std::move(references))).value.get(), &object);

  std::vector<task<>> voids;
  voids.push_back(nothing());
  EXPECT_EQ((co_await when_any(std::move(voids))).index, 0U);

  const std::vector<int> numbers{5, 6};
  auto view = numbers | std::views::transform(give);
  EXPECT_EQ((co_await when_any(view)).value, 5);
}

WEFT_TEST("when_any: those behind one that ends at once are not started") {
  bool started = false;
  auto start = [&]() -> task<int> {
    started = true;
    co_return 1;
  };
  EXPECT_EQ((co_await when_any(give(1), start())).index, 0U);
  std::vector<task<int>> some;
  some.push_back(give(1));
  some.push_back(start());
  EXPECT_EQ((co_await when_any(std::move(some))).index, 0U);
  EXPECT_FALSE(started);
}

TEST(when_any, the_first_to_end_wins_and_the_others_are_stopped_and_joined) {
  virtual_clock time;
  std::atomic<int> alive{0};
  auto held = [&](task<int> inner) -> task<int> {
    const test::counted one{alive};
    co_return co_await std::move(inner);
  };
  auto race = [&]() -> task<> {
    auto [index, value] = co_await when_any(held(nap(5ms, 5)), held(nap(2ms, 2)), held(nap(9ms, 9)));
    EXPECT_EQ(index, 1U);
    EXPECT_EQ(std::get<1>(value), 2);
    EXPECT_EQ(alive, 0);
    EXPECT_EQ(time.armed(), 0U);
  };
  EXPECT_TRUE(run_timed(time, race()));
  EXPECT_EQ(time.elapsed(), 2ms);
}

TEST(when_any, a_loser_with_a_cleanup_is_waited_for) {
  virtual_clock time;
  bool cleaned = false;
  auto slow_to_leave = [&]() -> task<int> {
    co_await weft::on_scope_exit(
        [](bool& done) -> task<> {
          co_await sleep_for(10ms);
          done = true;
        },
        std::ref(cleaned));
    co_return co_await nap(1s, 1);
  };
  auto race = [&]() -> task<> {
    EXPECT_EQ((co_await when_any(slow_to_leave(), nap(1ms, 2))).index, 1U);
    EXPECT_TRUE(cleaned);
  };
  EXPECT_TRUE(run_timed(time, race()));
  EXPECT_EQ(time.elapsed(), 11ms);
}

// On one executor, with the winner there at once: losers of two frames, one whose cleanup waits for what another gives back.
TEST(when_any, losers_are_unwound_before_it_goes_on) {
  for (int round = 0; round != 3; ++round) {
    weft::event never;
    weft::semaphore permits{0};
    int unwound = 0, cleaned = 0;
    struct leaves {
      weft::semaphore& permits;
      int& unwound;
      ~leaves() {
        ++unwound;
        permits.release();
      }
    };
    auto deep = [&]() -> task<int> {
      const leaves here{permits, unwound};
      co_await never.wait();
      co_return 0;
    };
    auto outer = [&]() -> task<int> {
      const leaves here{permits, unwound};
      co_return co_await deep();
    };
    auto clean_up = [&]() -> task<> {
      static_cast<void>(co_await permits.acquire());
      ++cleaned;
    };
    auto cleans = [&]() -> task<int> {
      co_await weft::on_scope_exit(clean_up);
      const leaves here{permits, unwound};
      static_cast<void>(co_await permits.acquire());
      co_return 0;
    };
    auto race = [&]() -> task<> {
      const auto [index, value] = co_await when_any(outer(), cleans(), outer(), give(7));
      EXPECT_EQ(index, 3U);
      EXPECT_EQ(unwound, 5);
      EXPECT_EQ(cleaned, 1);
    };
    sync_wait(race());
    EXPECT_EQ(never.stats().waiting + permits.stats().waiting, 0U);
    EXPECT_EQ(permits.available(), 5U);
  }
}

WEFT_TEST("when_any: a loser that has a value all the same has come too late") {
  test::gate never, door;
  auto [index, value] = co_await when_any(stubborn(never, 1), after(door, 2), open(door, 3));
  EXPECT_GE(index, 1U);
  EXPECT_EQ(std::get<0>(std::variant<int>{value.index() == 1 ? std::get<1>(value) : std::get<2>(value)}), index + 1);
}

// ---- when_any: failures -----------------------------------------------------------------------------------------------

TEST(when_any, a_failure_that_is_first_is_thrown) {
  virtual_clock time;
  EXPECT_EQ(
      what(run_timed(time, when_any(fail_after(1ms, "first"), nap(2ms, 1)) | weft::then([](auto&&) {})).exception()),
      "first");
  EXPECT_EQ(time.elapsed(), 1ms);
  EXPECT_EQ(what(run_timed(time, when_any(nap(2ms, 1), fail("at once")) | weft::then([](auto&&) {})).exception()),
            "at once");
}

TEST(when_any, failures_that_come_later_are_lost_and_told) {
  const lost_errors lost;
  test::gate never;
  auto race = [&]() -> task<int> {
    auto [index, value] = co_await when_any(fails_when_stopped(never), give(4));
    co_return std::get<1>(value);
  };
  EXPECT_EQ(sync_wait(race()), 4);
  EXPECT_EQ(lost_errors::list(), (std::vector<std::string>{"when_any: in its cleanup"}));

  lost_errors::list().clear();
  auto all_fail = [&]() -> task<> {
    std::vector<task<int>> some;
    some.push_back(fails_when_stopped(never));
    some.push_back(fail("first"));
    co_await when_any(std::move(some));
  };
  EXPECT_THROW(sync_wait(all_fail()), std::runtime_error);
  EXPECT_EQ(lost_errors::list(), (std::vector<std::string>{"when_any: in its cleanup"}));
}

TEST(when_any, without_a_handler_lost_errors_go_to_stderr) {
  testing::internal::CaptureStderr();
  weft::detail::lose_error("when_any", std::make_exception_ptr(std::runtime_error{"broken"}));
  weft::detail::lose_error("when_any", std::make_exception_ptr(1));
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "weft: when_any: a failure came too late to be thrown: broken\n"
            "weft: when_any: a failure came too late to be thrown\n");
  const auto first = weft::set_lost_error_handler(nullptr);
  EXPECT_EQ(weft::set_lost_error_handler(nullptr), first);
}

TEST(when_any, of_an_empty_range_fails_where_it_is_awaited) {
  auto none = []() -> task<> {
    const auto how = co_await as_result(when_any(std::vector<task<int>>{}));
    EXPECT_EQ(how.error(), std::errc::invalid_argument);
  };
  sync_wait(none());
}

// ---- when_any: stops --------------------------------------------------------------------------------------------------

TEST(when_any, one_that_is_stopped_by_itself_is_out_of_the_race) {
  virtual_clock time;
  auto race = []() -> task<int> {
    auto [index, value] = co_await when_any(stopped_by_itself(), nap(3ms, 3));
    EXPECT_EQ(index, 1U);
    co_return std::get<1>(value);
  };
  EXPECT_EQ(run_timed(time, race()).value(), 3);
  auto nobody = []() -> task<> { co_await when_any(stopped_by_itself(), stopped_by_itself()); };
  EXPECT_TRUE(run_timed(time, nobody()).is_stopped());
}

TEST(when_any, a_stop_before_during_and_after) {
  test::gate never, door;
  std::atomic<int> alive{0};
  auto held = [&](test::gate& at, int value) -> task<int> {
    const test::counted one{alive};
    co_await at;
    co_return value;
  };
  auto race = [&]() -> task<std::size_t> { co_return (co_await when_any(held(never, 1), held(door, 2))).index; };
  {
    weft::stop_source source;
    source.request_stop();
    bool stopped = false;
    weft::start(race(), [&](result<std::size_t> how) { stopped = how.is_stopped(); }, source.token());
    EXPECT_TRUE(stopped) << "before";
    EXPECT_EQ(alive, 0);
  }
  {
    weft::stop_source source;
    bool stopped = false;
    weft::start(race(), [&](result<std::size_t> how) { stopped = how.is_stopped(); }, source.token());
    EXPECT_EQ(alive, 2);
    source.request_stop();
    EXPECT_TRUE(stopped) << "during";
    EXPECT_EQ(alive, 0);
  }
  {
    weft::stop_source source;
    result<std::size_t> ended;
    weft::manual_executor loop;
    weft::start(loop, race(), [&](result<std::size_t> how) { ended = std::move(how); }, source.token());
    loop.run_all();
    door.open();
    loop.run_one();  // the child has won; the stop of its sibling and the parent's wake-up are under way
    source.request_stop();
    loop.run_all();
    EXPECT_EQ(ended.value(), 1U) << "after";
    EXPECT_EQ(alive, 0);
  }
}

TEST(when_any, winners_and_a_stop_race_on_several_threads) {
  for (int round = 0; round != test::rounds(2'000); ++round) {
    test::gate first, second, third;
    weft::stop_source source;
    std::atomic<int> alive{0}, ended{0};
    auto held = [&](test::gate& door, int value) -> task<int> {
      const test::counted one{alive};
      co_await door;
      co_return value;
    };
    auto race = [&]() -> task<int> {
      auto [index, value] = co_await when_any(held(first, 0), held(second, 1), held(third, 2));
      EXPECT_EQ(alive, 0);
      EXPECT_EQ(value.index(), index);
      co_return static_cast<int>(index);
    };
    std::thread opener{[&] { first.open(), third.open(); }};
    std::thread stopper{[&] {
      second.open();
      if (round % 2 == 0) source.request_stop();
    }};
    weft::start(
        race(),
        [&](result<int> how) {
          EXPECT_TRUE(how.is_stopped() || (how.value() >= 0 && how.value() <= 2));
          ++ended;
        },
        source.token());
    opener.join();
    stopper.join();
    EXPECT_EQ(ended, 1);
    EXPECT_EQ(alive, 0);
  }
}

// The winner ends while the parent still starts the others.
TEST(when_any, one_wins_on_another_thread_while_others_start) {
  for (int round = 0; round != test::rounds(1'000); ++round) {
    test::gate door, never;
    std::atomic<int> alive{0}, ended{0};
    auto held = [&](test::gate& at) -> task<int> {
      const test::counted one{alive};
      co_await at;
      co_return 1;
    };
    auto race = [&]() -> task<> {
      std::vector<task<int>> some;
      some.push_back(held(door));
      for (int i = 0; i != 20; ++i) some.push_back(held(never));
      EXPECT_EQ((co_await when_any(std::move(some))).index, 0U);
      EXPECT_EQ(alive, 0);
    };
    std::thread opener{[&] {
      while (door.waiting() == 0 && ended == 0) {
      }
      door.open();
    }};
    weft::start(race(), [&](result<void> how) {
      EXPECT_TRUE(how);
      ++ended;
    });
    opener.join();
    test::until([&] { return ended == 1; });
    EXPECT_EQ(alive, 0);
    EXPECT_EQ(never.waiting(), 0);
  }
}

task<int> race_tree(test::gate& never, int levels) {
  if (levels == 0) co_return co_await after(never, 0);
  auto [index, value] = co_await when_any(race_tree(never, levels - 1), race_tree(never, levels - 1));
  co_return static_cast<int>(index);
}

TEST(when_any, a_tree_of_races_is_stopped_by_its_sibling) {
  test::gate never;
  auto race = [&]() -> task<> {
    test::gate door;
    auto [index, value] = co_await when_any(race_tree(never, 10), after(door, 1), open(door, 2));
    EXPECT_GE(index, 1U);
    EXPECT_EQ(never.waiting(), 0);
  };
  sync_wait(race());
}

WEFT_TEST("when_any: nests with when_all and itself") {
  test::gate never;
  auto inner = [&](int value) -> task<int> {
    auto [index, either] = co_await when_any(after(never, 0), give(value));
    co_return std::get<1>(either);
  };
  auto [a, b] = co_await weft::when_all(inner(1), inner(2));
  EXPECT_EQ(a + b, 3);
  EXPECT_EQ((co_await when_any(weft::when_all(after(never, 1), give(2)), give(3))).index, 1U);
}

TEST(when_any, needs_no_stack_in_a_loop) {
  test::on_small_stack([] {
    test::gate never;
    auto loop = [&]() -> task<long> {
      long sum = 0;
      for (int i = 0; i != 100'000; ++i) {
        test::gate door;
        auto [index, value] = co_await when_any(after(door, 1), after(never, 1), open(door, 1));
        sum += static_cast<long>(value.index() == index);
      }
      co_return sum;
    };
    EXPECT_EQ(sync_wait(loop()), 100'000);
  });
}

TEST(when_any, a_loser_on_the_same_executor_ends_without_being_posted) {
  const test::calm no_late_wake_up;
  weft::manual_executor here;
  test::gate never;
  bool over = false;
  auto race = [&]() -> task<> { EXPECT_EQ((co_await when_any(after(never, 1), give(2))).index, 1U); };
  weft::start(here, race(), [&](result<void> how) { over = how.has_value(); });
  EXPECT_TRUE(here.run_one());
  EXPECT_TRUE(over) << "all of it is one job";
  EXPECT_EQ(never.waiting(), 0);
}

// Each loser ends on top of the race that it lost, but not without end.
task<int> race_again_when_stopped(test::gate& never, int depth) {
  auto again = [](test::gate& never, int depth) -> task<> {
    if (depth != 0) (void)co_await when_any(race_again_when_stopped(never, depth - 1), give(1));
  };
  co_await weft::on_scope_exit(again, std::ref(never), depth);
  co_await never;
  co_return 0;
}

TEST(when_any, needs_no_stack_where_each_loser_ends_by_another_race) {
  test::on_small_stack([] {
    test::gate never;
    auto race = [&]() -> task<> {
      EXPECT_EQ((co_await when_any(race_again_when_stopped(never, 20'000), give(1))).index, 1U);
    };
    sync_wait(race());
    EXPECT_EQ(never.waiting(), 0);
  });
}

// ---- when_some ----------------------------------------------------------------------------------------------------------

std::vector<task<int>> naps(auto... ms) {
  std::vector<task<int>> all;
  (all.push_back(nap(std::chrono::milliseconds{ms}, ms)), ...);
  return all;
}

TEST(when_some, gives_the_first_in_the_order_in_which_they_came) {
  virtual_clock time;
  auto some = []() -> task<> {
    const auto values = co_await when_some(3, naps(5, 1, 4, 2, 3));
    EXPECT_EQ(values, (std::vector<std::pair<std::size_t, int>>{{1, 1}, {3, 2}, {4, 3}}));
  };
  EXPECT_TRUE(run_timed(time, some()));
  EXPECT_EQ(time.elapsed(), 3ms);
  EXPECT_EQ(time.armed(), 0U);
}

TEST(when_some, as_a_pipe) {
  virtual_clock time;
  auto some = []() -> task<> {
    const auto values = co_await (naps(5, 1, 4) | when(2));
    EXPECT_EQ(values.size(), 2U);
    EXPECT_EQ(values[1].first, 2U);
    const std::vector<int> numbers{7, 8, 9};
    const auto first = co_await (numbers | std::views::transform(give) | when(1));
    EXPECT_EQ(first, (std::vector<std::pair<std::size_t, int>>{{0, 7}}));
  };
  EXPECT_TRUE(run_timed(time, some()));
  EXPECT_EQ(time.elapsed(), 4ms);
}

WEFT_TEST("when_some: of none starts none, of all gives all, of more fails") {
  bool started = false;
  auto start = [&]() -> task<int> {
    started = true;
    co_return 1;
  };
  auto one = [&] {
    std::vector<task<int>> all;
    all.push_back(start());
    return all;
  };
  EXPECT_TRUE((co_await when_some(0, one())).empty());
  const auto code_of = [](auto make) {
    try {
      static_cast<void>(make());
    } catch (const std::system_error& thrown) {
      return thrown.code();
    }
    return std::error_code{};
  };
  EXPECT_EQ(code_of([&] { return when_some(2, one()); }), std::errc::invalid_argument) << "where it is made";
  EXPECT_EQ(code_of([&] { return one() | when(2); }), std::errc::invalid_argument);
  EXPECT_FALSE(started);
  EXPECT_EQ((co_await when_some(1, one())).size(), 1U);
  EXPECT_TRUE(started);
}

TEST(when_some, a_failure_before_the_last_one_decides) {
  const lost_errors lost;
  virtual_clock time;
  test::gate never;
  auto some = [&]() -> task<> {
    auto tasks = naps(1, 5, 9);
    tasks.push_back(fail_after(3ms, "third"));
    tasks.push_back(fails_when_stopped(never));
    co_await when_some(2, std::move(tasks));
  };
  EXPECT_EQ(what(run_timed(time, some()).exception()), "third");
  EXPECT_EQ(time.elapsed(), 3ms);
  EXPECT_EQ(lost_errors::list(), (std::vector<std::string>{"when_some: in its cleanup"}));
}

TEST(when_some, a_failure_after_the_last_one_is_lost) {
  const lost_errors lost;
  virtual_clock time;
  test::gate never;
  auto some = [&]() -> task<> {
    auto tasks = naps(1, 2);
    tasks.insert(tasks.begin(), fails_when_stopped(never));
    const auto values = co_await when_some(2, std::move(tasks));
    EXPECT_EQ(values, (std::vector<std::pair<std::size_t, int>>{{1, 1}, {2, 2}}));
  };
  EXPECT_TRUE(run_timed(time, some()));
  EXPECT_EQ(lost_errors::list(), (std::vector<std::string>{"when_some: in its cleanup"}));
}

TEST(when_some, ends_stopped_when_too_few_are_left) {
  virtual_clock time;
  auto some = []() -> task<> {
    std::vector<task<int>> tasks = naps(1);
    tasks.push_back(stopped_by_itself());
    co_await when_some(2, std::move(tasks));
  };
  EXPECT_TRUE(run_timed(time, some()).is_stopped());
}

TEST(when_some, a_stop_goes_to_all) {
  virtual_clock time;
  auto some = []() -> task<> { co_await when_some(2, naps(1, 2, 3)); };
  const auto how = run_timed(time, some(), [&](auto& root) { root.request_stop(); });
  EXPECT_TRUE(how.is_stopped());
  EXPECT_EQ(time.armed(), 0U);
}

TEST(when_some, several_threads_bring_values_and_failures) {
  const lost_errors lost;
  for (int round = 0; round != test::rounds(1'000); ++round) {
    test::gate doors[4];
    std::atomic<int> ended{0};
    auto failing = [&](test::gate& door) -> task<int> {
      co_await door;
      throw std::runtime_error{"one of them"};
    };
    auto some = [&]() -> task<int> {
      std::vector<task<int>> tasks;
      for (int i = 0; i != 3; ++i) tasks.push_back(after(doors[i], i));
      tasks.push_back(failing(doors[3]));
      const auto values = co_await when_some(2, std::move(tasks));
      EXPECT_EQ(values.size(), 2U);
      for (const auto& [index, value] : values) EXPECT_EQ(static_cast<int>(index), value);
      co_return 1;
    };
    weft::start(some(), [&](result<int> how) {
      EXPECT_FALSE(how.is_stopped());
      ++ended;
    });
    std::vector<std::jthread> openers;
    for (auto& door : doors) openers.emplace_back([&] { door.open(); });
    openers.clear();
    EXPECT_EQ(ended, 1);
  }
}

}  // namespace

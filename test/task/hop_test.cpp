#include <weft/combine.hpp>
#include <weft/generator.hpp>
#include <weft/on_scope_exit.hpp>
#include <weft/scope.hpp>
#include <weft/with.hpp>

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/tasks.hpp"
#include "support/weft_test.hpp"

namespace {

using test::give;
using weft::as_result;
using weft::continue_on;
using weft::on_scope_exit;
using weft::result;
using weft::resume_on;
using weft::start_on;
using weft::sync_wait;
using weft::task;
using weft::yield;

// An executor that knows whether it is running: a hop must change the code that runs, not only what the environment says.
class station final : public weft::executor {
 public:
  void post(weft::job& work) noexcept override {
    ++posts;
    queue_.post(work);
  }
  bool run_one() {
    station* const before = std::exchange(running, this);
    const bool ran = queue_.run_one();
    running = before;
    return ran;
  }
  /// Whether the caller runs here, and its environment says so.
  bool is_here() const { return running == this && weft::current_env().executor == this; }

  int posts = 0;

 private:
  static inline station* running = nullptr;
  weft::manual_executor queue_;
};

// Runs a task that starts at `home`, until nothing is left to do anywhere.
struct journey {
  station home, north, south;

  template <class T>
  result<T> run(task<T> work, weft::stop_token stop = {}) {
    result<T> how;
    bool over = false;
    weft::start(home, std::move(work), [&](result<T> ended) { how = std::move(ended), over = true; }, stop);
    pump();
    EXPECT_TRUE(over);
    return how;
  }
  void pump() {
    while (home.run_one() || north.run_one() || south.run_one()) {
    }
  }
};

// ---- resume_on ------------------------------------------------------------------------------------------------------

TEST(resume_on, lasts_until_the_task_returns) {
  journey j;
  auto callee = [&]() -> task<int> {
    EXPECT_TRUE(j.home.is_here());
    co_await resume_on(j.north);
    EXPECT_TRUE(j.north.is_here());
    co_return 3;
  };
  auto caller = [&]() -> task<int> {
    const int value = co_await callee();
    EXPECT_TRUE(j.home.is_here());
    co_return value;
  };
  EXPECT_EQ(j.run(caller()).value(), 3);
  EXPECT_EQ(j.north.posts, 1);
  EXPECT_EQ(j.home.posts, 2) << "to start, and to come home";
}

TEST(resume_on, what_it_calls_and_waits_for_is_there_too) {
  journey j;
  test::gate door;
  auto inner = [&]() -> task<> {
    EXPECT_TRUE(j.north.is_here());
    co_await door;
    EXPECT_TRUE(j.north.is_here());
  };
  auto outer = [&]() -> task<> {
    co_await resume_on(j.north);
    co_await inner();
    EXPECT_TRUE(j.north.is_here());
  };
  int over = 0;
  weft::start(j.home, outer(), [&](result<void>) { ++over; });
  j.pump();
  EXPECT_EQ(door.waiting(), 1);
  door.open();
  EXPECT_EQ(over, 0) << "woken, not run, by the opener";
  j.pump();
  EXPECT_EQ(over, 1);
}

TEST(resume_on, where_it_is_already_is_no_hop) {
  journey j;
  auto stays = [&]() -> task<> {
    co_await resume_on(j.home);
    EXPECT_TRUE(j.home.is_here());
  };
  EXPECT_TRUE(j.run(stays()));
  EXPECT_EQ(j.home.posts, 1);
}

TEST(resume_on, twice_in_one_task_comes_home_in_one_hop) {
  journey j;
  auto callee = [&]() -> task<> {
    co_await resume_on(j.north);
    co_await resume_on(j.south);
    EXPECT_TRUE(j.south.is_here());
    co_await resume_on(j.north);
    EXPECT_TRUE(j.north.is_here());
  };
  auto caller = [&]() -> task<> {
    co_await callee();
    EXPECT_TRUE(j.home.is_here());
  };
  EXPECT_TRUE(j.run(caller()));
  EXPECT_EQ(j.north.posts, 2);
  EXPECT_EQ(j.south.posts, 1);
  EXPECT_EQ(j.home.posts, 2);
}

TEST(resume_on, back_to_where_it_came_from_needs_no_hop_home) {
  journey j;
  auto callee = [&]() -> task<> {
    co_await resume_on(j.north);
    co_await resume_on(j.home);
  };
  auto caller = [&]() -> task<> {
    co_await callee();
    EXPECT_TRUE(j.home.is_here());
  };
  EXPECT_TRUE(j.run(caller()));
  EXPECT_EQ(j.home.posts, 2);
}

TEST(resume_on, nested_each_comes_home_to_its_caller) {
  journey j;
  auto inner = [&]() -> task<int> {
    EXPECT_TRUE(j.north.is_here());
    co_await resume_on(j.south);
    EXPECT_TRUE(j.south.is_here());
    co_return 1;
  };
  auto middle = [&]() -> task<int> {
    co_await resume_on(j.north);
    const int one = co_await inner();
    EXPECT_TRUE(j.north.is_here());
    co_return one + 1;
  };
  auto outer = [&]() -> task<int> {
    const int two = co_await middle();
    EXPECT_TRUE(j.home.is_here());
    co_return two + 1;
  };
  EXPECT_EQ(j.run(outer()).value(), 3);
}

TEST(resume_on, a_failure_is_thrown_at_home) {
  journey j;
  auto callee = [&]() -> task<> {
    co_await resume_on(j.north);
    throw std::runtime_error{"there"};
  };
  auto caller = [&]() -> task<> {
    try {
      co_await callee();
      ADD_FAILURE();
    } catch (const std::runtime_error&) {
      EXPECT_TRUE(j.home.is_here());
    }
  };
  EXPECT_TRUE(j.run(caller()));
}

TEST(resume_on, cleanups_run_where_the_task_was_when_it_named_them) {
  journey j;
  std::vector<std::string> order;
  auto note = [&](station& expected, const char* name) -> task<> {
    EXPECT_TRUE(expected.is_here());
    order.emplace_back(name);
    co_return;
  };
  auto callee = [&]() -> task<> {
    co_await on_scope_exit(note(j.home, "home"));
    co_await resume_on(j.north);
    co_await on_scope_exit(note(j.north, "north"));
    co_await resume_on(j.south);
    co_await on_scope_exit(note(j.south, "south"));
  };
  EXPECT_TRUE(j.run(callee()));
  EXPECT_EQ(order, (std::vector<std::string>{"south", "north", "home"}));
}

TEST(resume_on, a_task_in_the_way_of_no_executor_stays_where_it_was_brought) {
  station north;
  int steps = 0;
  auto callee = [&]() -> task<> {
    co_await resume_on(north);
    EXPECT_TRUE(north.is_here());
    ++steps;
  };
  auto caller = [&]() -> task<> {
    co_await callee();
    EXPECT_EQ(weft::current_env().executor, nullptr);
    ++steps;
  };
  weft::start(caller(), [&](result<void>) { ++steps; });
  EXPECT_EQ(steps, 0);
  while (north.run_one()) {
  }
  EXPECT_EQ(steps, 3);
}

TEST(resume_on, children_of_when_all_hop_each_for_itself) {
  journey j;
  auto child = [&](station& there, int value) -> task<int> {
    co_await resume_on(there);
    EXPECT_TRUE(there.is_here());
    co_return value;
  };
  auto both = [&]() -> task<int> {
    auto [a, b, c] = co_await weft::when_all(child(j.north, 1), child(j.south, 2), child(j.home, 4));
    EXPECT_TRUE(j.home.is_here());
    co_return a + b + c;
  };
  EXPECT_EQ(j.run(both()).value(), 7);
}

TEST(resume_on, a_fork_hops_for_itself_and_its_scope_stays_at_home) {
  journey j;
  auto child = [&](int value) -> task<int> {
    co_await resume_on(j.north);
    EXPECT_TRUE(j.north.is_here());
    co_return value;
  };
  auto body = [&](weft::scope& s) -> task<int> {
    auto one = s.fork(child(1));
    auto two = s.fork(child(2));
    const int first = co_await std::move(one);
    EXPECT_TRUE(j.home.is_here());
    co_return first + co_await std::move(two);
  };
  auto outer = [&]() -> task<int> { co_return co_await weft::with_scope(body); };
  EXPECT_EQ(j.run(outer()).value(), 3);
}

// ---- stops ----------------------------------------------------------------------------------------------------------

TEST(resume_on, a_stop_before_it_makes_no_hop) {
  journey j;
  weft::stop_source source;
  auto callee = [&]() -> task<> {
    source.request_stop();
    co_await resume_on(j.north);
    ADD_FAILURE();
  };
  EXPECT_TRUE(j.run(callee(), source.token()).is_stopped());
  EXPECT_EQ(j.north.posts, 0);
}

TEST(resume_on, a_stop_on_the_way_takes_effect_at_the_next_wait) {
  journey j;
  weft::stop_source source;
  test::gate never;
  bool arrived = false;
  auto callee = [&]() -> task<> {
    co_await resume_on(j.north);
    arrived = true;
    co_await never;
    ADD_FAILURE();
  };
  auto caller = [&]() -> task<> {
    const auto how = co_await as_result(callee());
    EXPECT_TRUE(how.is_stopped());
    EXPECT_TRUE(j.home.is_here()) << "a task that is unwound goes home, too";
  };
  int over = 0;
  weft::start(j.home, caller(), [&](result<void> how) { over += how ? 1 : 100; }, source.token());
  j.home.run_one();
  source.request_stop();
  EXPECT_FALSE(arrived);
  j.pump();
  EXPECT_TRUE(arrived);
  EXPECT_EQ(over, 1);
}

TEST(resume_on, unwinding_passes_through_hops_and_cleanups) {
  journey j;
  weft::stop_source source;
  test::gate never;
  std::atomic<int> alive{0};
  std::vector<std::string> order;
  auto note = [&](station& expected, const char* name) -> task<> {
    EXPECT_TRUE(expected.is_here());
    order.emplace_back(name);
    co_return;
  };
  auto inner = [&]() -> task<int> {
    const test::counted one{alive};
    co_await resume_on(j.south);
    co_await on_scope_exit(note(j.south, "south"));
    co_await resume_on(j.home);
    co_await resume_on(j.north);
    co_await never;
    co_return 1;
  };
  auto middle = [&]() -> task<int> {
    const test::counted one{alive};
    co_await on_scope_exit(note(j.home, "home"));
    co_await resume_on(j.north);
    co_return co_await inner();
  };
  auto outer = [&]() -> task<> {
    const test::counted one{alive};
    const auto how = co_await as_result(middle());
    EXPECT_TRUE(how.is_stopped());
    EXPECT_TRUE(j.home.is_here());
    EXPECT_EQ(alive, 1);
  };
  weft::start(j.home, outer(), [](result<void> how) { EXPECT_TRUE(how); }, source.token());
  j.pump();
  EXPECT_EQ(never.waiting(), 1);
  EXPECT_EQ(alive, 3);
  source.request_stop();
  j.pump();
  EXPECT_EQ(alive, 0);
  EXPECT_EQ(order, (std::vector<std::string>{"south", "home"}));
}

TEST(resume_on, a_stop_on_the_way_home_takes_no_value_away) {
  journey j;
  weft::stop_source source;
  auto callee = [&]() -> task<int> {
    co_await resume_on(j.north);
    co_return 5;
  };
  auto caller = [&]() -> task<int> { co_return co_await callee(); };
  result<int> how;
  weft::start(j.home, caller(), [&](result<int> ended) { how = std::move(ended); }, source.token());
  j.home.run_one();
  j.north.run_one();
  source.request_stop();
  j.pump();
  EXPECT_EQ(how.value(), 5);
}

// ---- resume_on in an async_generator
// ----------------------------------------------------------------------------------

/// Says where it is destroyed.
struct leaves_at {
  station& where;
  int& times;
  leaves_at(station& at, int& count) : where{at}, times{count} {}
  leaves_at(const leaves_at&) = delete;
  ~leaves_at() { times += where.is_here() ? 1 : 100; }
};

TEST(resume_on, in_a_generator_lasts_until_it_ends_and_comes_home_at_each_value) {
  journey j;
  auto numbers = [&]() -> weft::async_generator<int> {
    EXPECT_TRUE(j.home.is_here());
    co_yield 0;
    EXPECT_TRUE(j.home.is_here());
    co_await resume_on(j.north);
    for (int i = 1; i != 4; ++i) {
      EXPECT_TRUE(j.north.is_here());
      co_yield i;
    }
    EXPECT_TRUE(j.north.is_here());
    co_await resume_on(j.south);
    EXPECT_TRUE(j.south.is_here());
    co_yield 4;
    EXPECT_TRUE(j.south.is_here());
  };
  auto consumer = [&]() -> task<int> {
    auto all = numbers();
    int sum = 0;
    while (const int* n = co_await all.next()) {
      EXPECT_TRUE(j.home.is_here());
      sum += *n;
    }
    EXPECT_TRUE(j.home.is_here());
    EXPECT_EQ(co_await all.next(), nullptr);
    co_return sum;
  };
  EXPECT_EQ(j.run(consumer()).value(), 10);
  EXPECT_EQ(j.north.posts, 4);
  EXPECT_EQ(j.south.posts, 2);
}

TEST(resume_on, a_generator_that_hopped_has_another_consumer_elsewhere) {
  journey j;
  auto numbers = [&]() -> weft::async_generator<int> {
    co_await resume_on(j.north);
    for (int i = 0;; ++i) {
      EXPECT_TRUE(j.north.is_here());
      co_yield i;
    }
  };
  auto all = numbers();
  auto asks = [&](station& own, int expected) -> task<> {
    const int* n = co_await all.next();
    EXPECT_TRUE(own.is_here());
    EXPECT_EQ(*n, expected);
  };
  EXPECT_TRUE(j.run(asks(j.home, 0)));
  bool over = false;
  weft::start(j.south, asks(j.south, 1), [&](result<void> how) { over = how.has_value(); });
  j.pump();
  EXPECT_TRUE(over);
  const int posts = j.north.posts;
  weft::start(j.north, asks(j.north, 2), [&](result<void>) {});
  j.pump();
  EXPECT_EQ(j.north.posts, posts + 1) << "to start: it is there already";
}

TEST(resume_on, what_a_generator_that_hopped_throws_comes_home) {
  journey j;
  auto fails = [&]() -> weft::async_generator<int> {
    co_await resume_on(j.north);
    co_yield 1;
    throw std::runtime_error{"north"};
  };
  auto consumer = [&]() -> task<> {
    auto all = fails();
    (void)co_await all.next();
    bool thrown = false;
    try {
      (void)co_await all.next();
    } catch (const std::runtime_error&) {
      thrown = true;
    }
    EXPECT_TRUE(thrown);
    EXPECT_TRUE(j.home.is_here());
    EXPECT_EQ(co_await all.next(), nullptr);
  };
  EXPECT_TRUE(j.run(consumer()));
}

TEST(resume_on, a_generator_that_hopped_is_stopped_there_and_its_consumer_at_home) {
  for (const bool in_first : {true, false}) {
    journey j;
    weft::stop_source source;
    test::gate never;
    int there = 0, home = 0;
    auto waits = [&]() -> weft::async_generator<int> {
      co_await resume_on(j.north);
      const leaves_at left{j.north, there};
      if (!in_first) co_yield 1;
      co_await never;
    };
    auto consumer = [&]() -> task<> {
      const leaves_at left{j.home, home};
      auto all = waits();
      while (co_await all.next() != nullptr) {
      }
      ADD_FAILURE();
    };
    auto outer = [&]() -> task<> {
      EXPECT_TRUE((co_await as_result(consumer())).is_stopped());
      EXPECT_TRUE(j.home.is_here());
    };
    weft::start(j.home, outer(), [](result<void>) {}, source.token());
    j.pump();
    EXPECT_EQ(never.waiting(), 1);
    source.request_stop();
    j.pump();
    EXPECT_EQ(there, 1);
    EXPECT_EQ(home, 1);
  }
}

TEST(resume_on, a_generator_that_hopped_is_dropped_where_its_consumer_is) {
  journey j;
  int home = 0;
  auto numbers = [&]() -> weft::async_generator<int> {
    const leaves_at left{j.home, home};
    co_await resume_on(j.north);
    for (int i = 0;; ++i) co_yield i;
  };
  auto consumer = [&]() -> task<> {
    auto twice = [](int n) { return 2 * n; };
    auto all = numbers();
    EXPECT_EQ(*co_await all.next(), 0);
    EXPECT_EQ(*co_await all.next(), 1);
    all = weft::async_generator<int>{};
    const auto some = co_await (numbers() | weft::transform(twice) | weft::take(3) | weft::collect());
    EXPECT_EQ(some, (std::vector<int>{0, 2, 4}));
    EXPECT_TRUE(j.home.is_here());
  };
  EXPECT_TRUE(j.run(consumer()));
  EXPECT_EQ(home, 2);
}

TEST(resume_on, in_a_generator_of_a_fork_or_a_child_of_a_join) {
  journey j;
  auto numbers = [&]() -> weft::async_generator<int> {
    co_await resume_on(j.north);
    for (int i = 0; i != 3; ++i) {
      co_await yield();
      EXPECT_TRUE(j.north.is_here());
      co_yield i;
    }
  };
  auto sum = [&]() -> task<int> {
    int all = 0;
    auto some = numbers();
    while (const int* n = co_await some.next()) {
      EXPECT_TRUE(j.home.is_here());
      all += *n;
    }
    co_return all;
  };
  auto both = [&]() -> task<> {
    auto [a, b] = co_await weft::when_all(sum(), sum());
    EXPECT_EQ(a + b, 6);
    auto seen = [&](int) { EXPECT_TRUE(j.home.is_here()); };
    co_await (weft::merge(numbers(), numbers()) | weft::for_each(seen));
  };
  EXPECT_TRUE(j.run(both()));
}

TEST(resume_on, hops_between_threads_while_it_is_stopped) {
  for (int round = 0; round != test::rounds(500); ++round) {
    weft::new_thread_executor a, b;
    weft::stop_source source;
    std::atomic<int> alive{0}, ended{0};
    test::gate door;
    auto callee = [&]() -> task<int> {
      const test::counted one{alive};
      co_await resume_on(b);
      co_await door;
      co_return 1;
    };
    auto caller = [&]() -> task<int> {
      const test::counted one{alive};
      auto how = co_await as_result(callee());
      EXPECT_EQ(weft::current_env().executor, &a);
      co_return how ? *how : -1;
    };
    weft::start(
        a, caller(),
        [&](result<int> how) {
          EXPECT_TRUE(how.value() == 1 || how.value() == -1);
          ++ended;
        },
        source.token());
    std::thread stopper{[&] { source.request_stop(); }};
    door.open();
    stopper.join();
    test::until([&] { return ended == 1; });
    EXPECT_EQ(alive, 0);
  }
}

task<long> hop_down(weft::executor& even, weft::executor& odd, long depth) {
  co_await resume_on(depth % 2 == 0 ? even : odd);
  if (depth == 0) co_return 0;
  co_return co_await hop_down(even, odd, depth - 1) + 1;
}

TEST(resume_on, needs_no_stack) {
  test::on_small_stack([] {
    weft::inline_executor even, odd;
    EXPECT_EQ(sync_wait(hop_down(even, odd, 20'000)), 20'000);
    auto loop = [&]() -> task<long> {
      long sum = 0;
      for (int i = 0; i != 100'000; ++i) sum += co_await hop_down(even, odd, 1);
      co_return sum;
    };
    EXPECT_EQ(sync_wait(loop()), 100'000);
    weft::start(loop(), [](result<long> how) { EXPECT_EQ(how.value(), 100'000); });
    weft::start(even, loop(), [](result<long> how) { EXPECT_EQ(how.value(), 100'000); });
  });
}

// ---- start_on -------------------------------------------------------------------------------------------------------

TEST(start_on, runs_there_from_the_beginning) {
  journey j;
  auto work = [&](int value) -> task<int> {
    EXPECT_TRUE(j.north.is_here());
    co_return value;
  };
  auto caller = [&]() -> task<int> {
    const int a = co_await start_on(j.north, work(1));
    EXPECT_TRUE(j.home.is_here());
    const int b = co_await (work(2) | start_on(j.north));
    EXPECT_TRUE(j.home.is_here());
    co_return a + b;
  };
  EXPECT_EQ(j.run(caller()).value(), 3);
}

TEST(start_on, an_awaitable_that_is_no_task) {
  journey j;
  test::gate door;
  door.open();
  auto caller = [&]() -> task<> {
    co_await start_on(j.north, door.pass());
    auto pass = door.pass();
    co_await start_on(j.south, pass);
    EXPECT_TRUE(j.home.is_here());
  };
  EXPECT_TRUE(j.run(caller()));
  EXPECT_EQ(j.north.posts, 1);
  EXPECT_EQ(j.south.posts, 1);
}

TEST(start_on, stopped_before_does_not_begin) {
  journey j;
  weft::stop_source source;
  source.request_stop();
  auto work = []() -> task<> {
    ADD_FAILURE();
    co_return;
  };
  EXPECT_TRUE(j.run(start_on(j.north, work()), source.token()).is_stopped());
  EXPECT_EQ(j.north.posts, 0);
}

// ---- continue_on ----------------------------------------------------------------------------------------------------

TEST(continue_on, has_what_follows_run_there) {
  journey j;
  auto caller = [&]() -> task<int> {
    const int value = co_await (give(4) | continue_on(j.north));
    EXPECT_TRUE(j.north.is_here());
    co_return value;
  };
  auto outer = [&]() -> task<int> {
    const int value = co_await caller();
    EXPECT_TRUE(j.home.is_here());
    co_return value;
  };
  EXPECT_EQ(j.run(outer()).value(), 4);
}

TEST(continue_on, in_a_pipe_lasts_to_its_end) {
  journey j;
  auto checked = [&](int value) {
    EXPECT_TRUE(j.north.is_here());
    return value + 1;
  };
  auto caller = [&]() -> task<int> {
    const int value = co_await (give(4) | continue_on(j.north) | weft::then(checked));
    EXPECT_TRUE(j.home.is_here());
    co_return value;
  };
  EXPECT_EQ(j.run(caller()).value(), 5);
}

TEST(continue_on, a_failure_arrives_there) {
  journey j;
  auto fail = []() -> task<> {
    throw std::runtime_error{"broken"};
    co_return;
  };
  auto caller = [&]() -> task<> {
    try {
      co_await (fail() | continue_on(j.north));
      ADD_FAILURE();
    } catch (const std::runtime_error&) {
      EXPECT_TRUE(j.north.is_here());
    }
  };
  EXPECT_TRUE(j.run(caller()));
}

TEST(continue_on, a_stop_of_what_it_awaits_makes_no_hop) {
  journey j;
  weft::stop_source source;
  test::gate never;
  std::atomic<int> alive{0};
  auto wait = [&]() -> task<> {
    const test::counted one{alive};
    co_await never;
  };
  auto caller = [&]() -> task<> {
    const test::counted one{alive};
    co_await (wait() | continue_on(j.north));
    ADD_FAILURE();
  };
  result<void> how{std::exception_ptr{}};
  weft::start(j.home, caller(), [&](result<void> ended) { how = std::move(ended); }, source.token());
  j.pump();
  source.request_stop();
  j.pump();
  EXPECT_TRUE(how.is_stopped());
  EXPECT_EQ(alive, 0);
  EXPECT_EQ(j.north.posts, 0);
}

TEST(continue_on, a_stop_after_it_has_completed_takes_no_value_away) {
  journey j;
  weft::stop_source source;
  auto last_moment = [&]() -> task<int> {
    source.request_stop();
    co_return 6;
  };
  auto caller = [&]() -> task<int> { co_return co_await (last_moment() | continue_on(j.north)); };
  EXPECT_EQ(j.run(caller(), source.token()).value(), 6);
}

// ---- without memory -------------------------------------------------------------------------------------------------

TEST(hop, without_memory_the_task_is_where_it_was_and_no_value_is_lost_silently) {
  journey j;
  test::counting_resource memory;
  auto body = [&]() -> task<> {
    memory.fail_after = memory.allocations;
    EXPECT_THROW(co_await resume_on(j.north), std::bad_alloc);
    EXPECT_TRUE(j.home.is_here());
    memory.fail_after = static_cast<std::size_t>(-1);
    auto continued = give(4) | continue_on(j.north);
    memory.fail_after = memory.allocations;
    EXPECT_THROW(co_await std::move(continued), std::bad_alloc);
    EXPECT_TRUE(j.home.is_here());
  };
  auto outer = [&]() -> task<> { co_await weft::with_memory(&memory, body); };
  EXPECT_TRUE(j.run(outer()));
  EXPECT_EQ(memory.live, 0U);
  EXPECT_EQ(j.north.posts, 0);
}

// ---- yield ----------------------------------------------------------------------------------------------------------

TEST(yield, lets_what_was_posted_before_run) {
  journey j;
  std::string order;
  auto letters = [&](char letter) -> task<> {
    for (int i = 0; i != 3; ++i) {
      order += letter;
      co_await yield();
    }
  };
  weft::start(j.home, letters('a'), [](result<void>) {});
  weft::start(j.home, letters('b'), [](result<void>) {});
  j.pump();
  EXPECT_EQ(order, "ababab");
}

TEST(yield, does_not_recurse_on_an_inline_executor_or_without_one) {
  test::on_small_stack([] {
    weft::inline_executor here;
    auto loop = []() -> task<int> {
      int count = 0;
      while (count != 200'000) {
        co_await yield();
        ++count;
      }
      co_return count;
    };
    int ended = 0;
    weft::start(here, loop(), [&](result<int> how) { ended += how.value(); });
    weft::start(loop(), [&](result<int> how) { ended += how.value(); });
    EXPECT_EQ(ended, 400'000);
    EXPECT_EQ(sync_wait(loop()), 200'000);
    auto both = [&]() -> task<int> {
      auto [a, b] = co_await weft::when_all(loop(), loop());
      co_return a + b;
    };
    weft::start(both(), [&](result<int> how) { EXPECT_EQ(how.value(), 400'000); });
  });
}

TEST(yield, is_a_stop_point) {
  journey j;
  weft::stop_source source;
  int rounds = 0;
  auto for_ever = [&]() -> task<> {
    for (;;) {
      co_await yield();
      ++rounds;
    }
  };
  bool stopped = false;
  weft::start(j.home, for_ever(), [&](result<void> how) { stopped = how.is_stopped(); }, source.token());
  for (int i = 0; i != 10; ++i) j.home.run_one();
  source.request_stop();
  const int before = rounds;
  j.pump();
  EXPECT_TRUE(stopped);
  EXPECT_LE(rounds, before + 1);
}

WEFT_TEST("yield: in an async_generator") {
  auto numbers = []() -> weft::async_generator<int> {
    for (int i = 0; i != 3; ++i) {
      co_await yield();
      co_yield i;
    }
  };
  auto all = numbers();
  int sum = 0;
  while (const int* one = co_await all.next()) sum += *one;
  EXPECT_EQ(sum, 3);
}

}  // namespace

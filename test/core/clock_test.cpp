#include <weft/clock.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <random>
#include <thread>
#include <vector>
#include <weft/combine.hpp>
#include <weft/pool.hpp>
#include <weft/shared_task.hpp>
#include <weft/time.hpp>
#include <weft/timed.hpp>

#include "support/timed_root.hpp"
#include "support/weft_test.hpp"

namespace {

using namespace std::chrono_literals;
using test::run_timed;
using test::virtual_clock;
using weft::result;
using weft::sleep_for;
using weft::sleep_until;
using weft::task;

// ---- sleeping, in virtual time --------------------------------------------------------------------------------------

task<int> nap(std::chrono::nanoseconds d, int value = 1) {
  co_await sleep_for(d);
  co_return value;
}

TEST(sleep, lasts_as_long_as_it_was_told) {
  virtual_clock time;
  EXPECT_EQ(run_timed(time, nap(5ms, 7)).value(), 7);
  EXPECT_EQ(time.elapsed(), 5ms);
}

TEST(sleep, until_a_time_point) {
  virtual_clock time;
  auto twice = [&]() -> task<> {
    const auto begin = weft::current_clock().now();
    co_await sleep_until(begin + 3ms);
    EXPECT_EQ(time.elapsed(), 3ms);
    co_await sleep_until(begin + 2ms);  // that has passed
  };
  EXPECT_TRUE(run_timed(time, twice()));
  EXPECT_EQ(time.elapsed(), 3ms);
  EXPECT_EQ(time.armed_so_far(), 1U);
}

TEST(sleep, of_no_time_does_not_suspend) {
  virtual_clock time;
  auto none = []() -> task<> {
    co_await sleep_for(0s);
    co_await sleep_for(-1h);
    co_await sleep_for(std::chrono::duration<double>{-1e300});
  };
  EXPECT_TRUE(run_timed(time, none()));
  EXPECT_EQ(time.armed_so_far(), 0U);
}

// ---- intervals, in virtual time -------------------------------------------------------------------------------------

using weft::interval;
using weft::missed_ticks;

// When each of some ticks was taken, and when it was due, where the second one comes `late` after the first.
struct taken_ticks {
  std::vector<std::chrono::nanoseconds> at, due;
};
taken_ticks ticks_taken(missed_ticks missed, std::chrono::nanoseconds late) {
  virtual_clock time;
  taken_ticks all;
  const auto takes = [&]() -> task<> {
    co_await sleep_for(7ms);  // it begins with its first wait, not here
    interval every{10ms, missed};
    for (int i = 0; i != 6; ++i) {
      const auto was_due = co_await every.next();
      all.due.push_back(was_due - virtual_clock::begin());
      all.at.push_back(time.elapsed());
      if (i == 0) co_await sleep_for(late);
    }
  };
  EXPECT_TRUE(run_timed(time, takes()));
  return all;
}

TEST(interval, ticks_once_a_period) {
  const std::vector<std::chrono::nanoseconds> on_time{17ms, 27ms, 37ms, 47ms, 57ms, 67ms};
  for (const missed_ticks missed : {missed_ticks::skip, missed_ticks::burst, missed_ticks::delay}) {
    EXPECT_EQ(ticks_taken(missed, 0ms).at, on_time);
    EXPECT_EQ(ticks_taken(missed, 9ms).at, on_time) << "it drifts";
    EXPECT_EQ(ticks_taken(missed, 10ms).due, on_time);
  }
}
TEST(interval, leaves_out_ticks_that_were_missed) {
  const taken_ticks all = ticks_taken(missed_ticks::skip, 35ms);
  EXPECT_EQ(all.at, (std::vector<std::chrono::nanoseconds>{17ms, 52ms, 57ms, 67ms, 77ms, 87ms}));
  EXPECT_EQ(all.due, (std::vector<std::chrono::nanoseconds>{17ms, 27ms, 57ms, 67ms, 77ms, 87ms}));
}
TEST(interval, makes_up_for_ticks_that_were_missed) {
  const taken_ticks all = ticks_taken(missed_ticks::burst, 35ms);
  EXPECT_EQ(all.at, (std::vector<std::chrono::nanoseconds>{17ms, 52ms, 52ms, 52ms, 57ms, 67ms}));
  EXPECT_EQ(all.due, (std::vector<std::chrono::nanoseconds>{17ms, 27ms, 37ms, 47ms, 57ms, 67ms}));
}
TEST(interval, delays_ticks_behind_one_that_is_late) {
  const taken_ticks all = ticks_taken(missed_ticks::delay, 35ms);
  EXPECT_EQ(all.at, (std::vector<std::chrono::nanoseconds>{17ms, 52ms, 62ms, 72ms, 82ms, 92ms}));
  EXPECT_EQ(all.due, (std::vector<std::chrono::nanoseconds>{17ms, 27ms, 62ms, 72ms, 82ms, 92ms}));
}

TEST(interval, begins_anew) {
  virtual_clock time;
  const auto takes = [&]() -> task<> {
    interval every{10ms};
    EXPECT_EQ(every.period(), 10ms);
    co_await every.next();
    co_await sleep_for(5ms);
    every.reset();
    co_await every.next();
    EXPECT_EQ(time.elapsed(), 25ms);
    co_await every.next();
    EXPECT_EQ(time.elapsed(), 35ms);
  };
  EXPECT_TRUE(run_timed(time, takes()));
}

TEST(interval, is_awaited_twice_in_one_expression) {
  virtual_clock time;
  std::chrono::nanoseconds between{0};
  const auto takes = [&]() -> task<> {
    interval every{10ms};
    between = std::chrono::abs((co_await every.next()) - (co_await every.next()));  // in either order
  };
  EXPECT_TRUE(run_timed(time, takes()));
  EXPECT_EQ(between, 10ms);
}

TEST(interval, of_any_length_never_overflows) {
  for (const missed_ticks missed : {missed_ticks::skip, missed_ticks::burst, missed_ticks::delay}) {
    virtual_clock time;
    const auto takes = [&]() -> task<> {
      interval longest{std::chrono::hours::max(), missed}, infinite{std::chrono::duration<double>{1e300}, missed},
          shortest{std::chrono::duration<double, std::pico>{0.1}, missed};
      const auto none = co_await weft::as_result(weft::timeout(24h, longest.next()));
      EXPECT_EQ(none.error(), weft::errc::timed_out);
      const auto first = co_await shortest.next();
      co_await sleep_for(1h);
      EXPECT_EQ(co_await shortest.next(), first + 1ns);
      EXPECT_FALSE(co_await weft::as_result(weft::timeout(24h, infinite.next())));
    };
    EXPECT_TRUE(run_timed(time, takes()));
  }
}

TEST(interval, keeps_a_tick_that_a_stop_has_not_let_come) {
  virtual_clock time;
  const auto takes = [&]() -> task<> {
    interval every{10ms};
    for (int i = 0; i != 3; ++i) {
      const auto early = co_await weft::as_result(weft::timeout(3ms, every.next()));
      EXPECT_EQ(early.error(), weft::errc::timed_out);
    }
    co_await every.next();
    EXPECT_EQ(time.elapsed(), 10ms);
  };
  EXPECT_TRUE(run_timed(time, takes()));
}

TEST(interval_death, by_no_period) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(interval{0ms}, "an interval was given a period that is no time");
  EXPECT_DEATH(interval{-1ms}, "an interval was given a period that is no time");
}
TEST(interval_death, by_two_that_await_it) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(weft::sync_wait([]() -> task<> {
                 interval every{1h};
                 co_await weft::when_all(every.next(), every.next());
               }()),
               "two tasks await the next tick of one interval at once");
}

// ---- the virtual clock ----------------------------------------------------------------------------------------------

TEST(virtual_clock, goes_no_further_than_told) {
  struct counted : weft::timer {
    counted() noexcept : timer{[](timer& self) noexcept { ++static_cast<counted&>(self).fired; }} {}
    int fired = 0;
  } soon, late;
  virtual_clock time;
  EXPECT_EQ(time.next(), std::nullopt);
  const auto begin = time.now();
  time.arm(late, begin + 1h);
  time.arm(soon, begin + 1ms);
  const auto due = time.next();
  EXPECT_EQ(due, begin + 1ms);
  EXPECT_TRUE(time.cancel(soon));
  EXPECT_FALSE(time.advance_to_next(*due));
  EXPECT_EQ(late.fired, 0);
  EXPECT_EQ(time.elapsed(), 0ms);
  EXPECT_EQ(time.next(), begin + 1h);
  EXPECT_TRUE(time.advance_to_next(begin + 1h));
  EXPECT_EQ(late.fired, 1);
  EXPECT_EQ(time.elapsed(), 1h);
}

TEST(sleep, begins_where_it_is_awaited) {
  virtual_clock time;
  auto late = []() -> task<> {
    const auto made_early = sleep_for(2ms);
    co_await sleep_for(10ms);
    co_await made_early;
  };
  EXPECT_TRUE(run_timed(time, late()));
  EXPECT_EQ(time.elapsed(), 12ms);
}

TEST(sleep, durations_of_any_kind_and_length) {
  using weft::detail::saturated;
  EXPECT_EQ(saturated(std::chrono::duration<double>{0.25}), 250ms);
  EXPECT_EQ(saturated(std::chrono::duration<int, std::pico>{1}), 1ns) << "never shorter than asked";
  EXPECT_EQ(saturated(std::chrono::hours::max()), weft::clock::duration::max());
  EXPECT_EQ(saturated(std::chrono::hours::min()), weft::clock::duration::min());
  using real = std::chrono::duration<double>;
  constexpr double infinite = std::numeric_limits<double>::infinity();
  EXPECT_EQ(saturated(real{infinite}), weft::clock::duration::max());
  EXPECT_EQ(saturated(real{-infinite}), weft::clock::duration::min());
  EXPECT_EQ(saturated(real{1e300}), weft::clock::duration::max());
  using at = std::chrono::time_point<std::chrono::steady_clock, real>;
  EXPECT_EQ(saturated(at{real{infinite}}), weft::clock::time_point::max());
  EXPECT_EQ(saturated(at{real{-1e300}}), weft::clock::time_point::min());
  EXPECT_EQ(saturated(at{real{0.5}}), weft::clock::time_point{500ms});

  virtual_clock time;
  auto for_ever = []() -> task<> { co_await sleep_for(std::chrono::hours::max()); };
  EXPECT_TRUE(run_timed(time, for_ever())) << "virtual time comes there";
  EXPECT_EQ(time.now(), weft::clock::time_point::max());
}

TEST(sleep, many_at_once_wake_in_order) {
  const test::calm in_order;
  virtual_clock time;
  std::vector<int> woken;
  std::vector<std::unique_ptr<test::timed_root<int>>> sleepers;
  weft::manual_executor loop;
  auto one = [&](int ms) -> task<int> {
    co_await sleep_for(std::chrono::milliseconds{ms});
    woken.push_back(ms);
    co_return ms;
  };
  for (const int ms : {5, 1, 4, 2, 3}) {
    sleepers.push_back(std::make_unique<test::timed_root<int>>(weft::env{.executor = &loop, .clock = &time}, one(ms)));
    sleepers.back()->schedule();
  }
  loop.run_all();
  EXPECT_EQ(time.armed(), 5U);
  time.advance(10ms);
  loop.run_all();
  EXPECT_EQ(woken, (std::vector<int>{1, 2, 3, 4, 5}));
}

// ---- stops ----------------------------------------------------------------------------------------------------------

TEST(sleep, a_stop_before_it_arms_no_timer) {
  virtual_clock time;
  for (const auto d : {0ms, 5ms}) {
    weft::manual_executor loop;
    test::timed_root<int> root{{.executor = &loop, .clock = &time}, nap(d)};
    root.request_stop();
    root.schedule();
    loop.run_all();
    EXPECT_TRUE(root.take().is_stopped());
  }
  EXPECT_EQ(time.armed_so_far(), 0U);
}

TEST(sleep, a_stop_during_it_takes_the_timer_out) {
  virtual_clock time;
  const auto how = run_timed(time, nap(5ms), [&](auto& root) {
    EXPECT_EQ(time.armed(), 1U);
    root.request_stop();
    EXPECT_EQ(time.armed(), 0U);
  });
  EXPECT_TRUE(how.is_stopped());
  EXPECT_EQ(time.elapsed(), 0ms);
}

TEST(sleep, a_stop_after_it_has_fired_comes_too_late) {
  virtual_clock time;
  weft::manual_executor loop;
  test::timed_root<int> root{{.executor = &loop, .clock = &time}, nap(5ms, 3)};
  root.schedule();
  loop.run_all();
  time.advance(5ms);
  test::settle();
  EXPECT_FALSE(loop.empty());
  root.request_stop();
  loop.run_all();
  EXPECT_EQ(root.take().value(), 3);
}

// The timer, a stop, and the sleeper itself meet in every order.
TEST(sleep, a_stop_and_the_timer_race) {
  for (int round = 0; round != test::rounds(3'000); ++round) {
    virtual_clock time;
    weft::stop_source source;
    std::atomic<int> ends{0};
    std::thread sleeper{[&] {
      weft::inline_executor here;
      test::timed_root<int> root{{.executor = &here, .clock = &time}, nap(1ms)};
      weft::stop_callback stop{source.token(), [&] { root.request_stop(); }};
      root.schedule();
      test::until([&] { return ends == 2; });
      test::settle();
      EXPECT_TRUE(root.over());
    }};
    std::thread stopper{[&] {
      source.request_stop();
      ++ends;
    }};
    for (int i = 0; i != 20; ++i) time.advance(1ms);
    ++ends;
    stopper.join();
    sleeper.join();
    EXPECT_EQ(time.armed(), 0U);
  }
}

// ---- the interface --------------------------------------------------------------------------------------------------

TEST(clock, a_task_sees_that_of_its_environment_and_others_the_real_one) {
  virtual_clock time;
  auto look = [&]() -> task<> {
    EXPECT_EQ(&weft::current_clock(), &time);
    co_return;
  };
  EXPECT_TRUE(run_timed(time, look()));
  EXPECT_EQ(&weft::current_clock(), &weft::real_clock());
  weft::sync_wait([]() -> task<> {
    EXPECT_EQ(&weft::current_clock(), &weft::real_clock());
    co_return;
  }());
}

TEST(clock, a_shared_task_has_that_of_its_first_waiter) {
  virtual_clock time;
  auto outer = []() -> task<int> {
    weft::shared_task<int> shared{nap(5ms, 2)};
    co_return co_await shared;
  };
  EXPECT_EQ(run_timed(time, outer()).value(), 2);
  EXPECT_EQ(time.elapsed(), 5ms);
}

// ---- the real one ---------------------------------------------------------------------------------------------------

struct alarm : weft::timer {
  alarm() : timer{ring} {}
  static void ring(timer& self) noexcept {
    auto& mine = static_cast<alarm&>(self);
    if (mine.rang_at) *mine.rang_at = weft::real_clock().now();
    ++mine.rings;
  }
  std::optional<weft::clock::time_point>* rang_at = nullptr;
  std::atomic<int> rings{0};
};

// Nothing else fires while this does.
struct holder : weft::timer {
  holder()
      : timer{[](timer& self) noexcept {
          auto& mine = static_cast<holder&>(self);
          mine.held = true;
          test::until([&] { return mine.released.load(); });
        }} {}
  void begin() {
    weft::real_clock().arm(*this, {});
    test::until([&] { return held.load(); });
  }
  std::atomic<bool> held{false}, released{false};
};

TEST(real_clock, sleeps_in_real_time) {
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(weft::sync_wait(nap(3ms, 4)), 4);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 3ms);
}

TEST(real_clock, fires_what_is_due_and_gives_back_what_is_cancelled) {
  weft::clock& real = weft::real_clock();
  alarm never, soon, at_once;
  EXPECT_FALSE(real.cancel(never)) << "it was not armed";
  real.arm(never, weft::clock::time_point::max());
  real.arm(soon, real.now() + 1ms);
  real.arm(at_once, {});
  test::until([&] { return soon.rings == 1 && at_once.rings == 1; });
  EXPECT_FALSE(real.cancel(soon));
  EXPECT_TRUE(real.cancel(never));
  EXPECT_FALSE(real.cancel(never));
  EXPECT_EQ(never.rings, 0);
}

// The order in which a heap gives its nodes back, whatever was taken out between.
TEST(real_clock, keeps_many_timers_in_order) {
  weft::clock& real = weft::real_clock();
  struct numbered : weft::timer {
    numbered()
        : timer{[](timer& self) noexcept {
            auto& mine = static_cast<numbered&>(self);
            const auto before = mine.latest->exchange(mine.number);
            if (before > mine.number) ++*mine.disorders;
            ++*mine.fired;
          }} {}
    int number = 0;
    std::atomic<int>* latest = nullptr;
    std::atomic<int>* disorders = nullptr;
    std::atomic<int>* fired = nullptr;
  };
  constexpr int count = 2'000;
  std::vector<numbered> timers(count);
  std::vector<int> order(count);
  for (int i = 0; i != count; ++i) order[static_cast<std::size_t>(i)] = i;
  std::ranges::shuffle(order, std::minstd_rand{1});
  std::atomic<int> latest{-1}, disorders{0}, fired{0};
  holder hold;
  hold.begin();
  const auto begin = real.now();
  int cancelled = 0;
  for (const int i : order) {
    numbered& one = timers[static_cast<std::size_t>(i)];
    one.number = i;
    one.latest = &latest, one.disorders = &disorders, one.fired = &fired;
    real.arm(one, begin + std::chrono::microseconds{i});
    if (i % 3 == 0 && real.cancel(one)) ++cancelled;
  }
  for (const int i : order)
    if (i % 7 == 1 && real.cancel(timers[static_cast<std::size_t>(i)])) ++cancelled;
  hold.released = true;
  test::until([&] { return fired + cancelled == count; });
  EXPECT_EQ(disorders, 0);
  EXPECT_FALSE(real.cancel(hold));
}

TEST(real_clock, a_timer_may_be_armed_again_or_end_in_its_own_function) {
  struct again : weft::timer {
    again()
        : timer{[](timer& self) noexcept {
            auto& mine = static_cast<again&>(self);
            EXPECT_FALSE(weft::real_clock().cancel(mine)) << "it is what runs, and does not wait for itself";
            if (++mine.rounds < 5) return weft::real_clock().arm(mine, {});
            std::atomic<bool>& over = *mine.over;
            delete &mine;
            over = true;
          }} {}
    int rounds = 0;
    std::atomic<bool>* over = nullptr;
  };
  std::atomic<bool> over{false};
  auto* one = new again;
  one->over = &over;
  weft::real_clock().arm(*one, {});
  test::until([&] { return over.load(); });
}

TEST(real_clock, cancel_waits_for_a_function_that_runs) {
  struct slow : weft::timer {
    slow()
        : timer{[](timer& self) noexcept {
            auto& mine = static_cast<slow&>(self);
            mine.entered = true;
            test::until([&] { return mine.cancelling.load(); });
            for (int i = 0; i != 100; ++i) std::this_thread::yield();
            mine.left = true;
          }} {}
    std::atomic<bool> entered{false}, cancelling{false}, left{false};
  };
  for (int round = 0; round != 20; ++round) {
    slow one;
    weft::real_clock().arm(one, {});
    test::until([&] { return one.entered.load(); });
    one.cancelling = true;
    EXPECT_FALSE(weft::real_clock().cancel(one));
    EXPECT_TRUE(one.left);
  }
}

TEST(real_clock, sleeps_stops_and_cancels_from_several_threads) {
  std::atomic<int> ended{0};
  std::vector<std::jthread> threads;
  for (unsigned t = 0; t != 4; ++t)
    threads.emplace_back([&, t] {
      std::minstd_rand random{t + 1};
      for (int i = 0; i != test::rounds(2'000); ++i) {
        weft::stop_source source;
        std::atomic<bool> over{false};
        weft::start(
            nap(std::chrono::microseconds{random() % 50}),
            [&](result<int>) {
              ++ended;
              over = true;
            },
            source.token());
        if (random() % 2 == 0) source.request_stop();
        if (random() % 8 == 0) std::this_thread::sleep_for(20us);
        source.request_stop();
        test::until([&] { return over.load(); });  // its root has left the source
      }
    });
  threads.clear();
  EXPECT_EQ(ended, 4 * test::rounds(2'000));
}

// The child has no thread but its own: its clock starts one.
TEST(real_clock, works_in_a_forked_child) {
#if defined(WEFT_TEST_TSAN)
  GTEST_SKIP() << "the thread sanitizer starts no threads after a fork";
#endif
  EXPECT_EQ(weft::sync_wait(nap(1ms)), 1);
  const pid_t child = fork();
  if (child == 0) {
    alarm set_off;
    weft::real_clock().arm(set_off, weft::real_clock().now() + 1ms);
    while (set_off.rings == 0) usleep(100);
    _exit(17);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 17);
  EXPECT_EQ(weft::sync_wait(nap(1ms)), 1);
}

// What other threads have armed lies on stacks that new threads get there, and would wake a pool that stayed behind.
TEST(real_clock, forgets_in_a_forked_child_what_others_have_armed) {
#if defined(WEFT_TEST_TSAN)
  GTEST_SKIP() << "the thread sanitizer starts no threads after a fork";
#endif
  holder hold;  // none of them fires before the fork, however late that comes
  hold.begin();
  std::atomic<bool> over = false;
  const weft::pool workers{{.threads = 1}};
  weft::start(workers.executor(), nap(100ms), [&](result<int>) { over = true; });
  std::jthread other{[] { weft::sync_wait(nap(100ms)); }};
  alarm mine, another;
  weft::real_clock().arm(mine, weft::real_clock().now() + 100ms);
  std::jthread{[&] { weft::real_clock().arm(another, weft::real_clock().now() + 1h); }}.join();
  usleep(20'000);  // those two have begun to sleep
  const pid_t child = fork();
  if (child == 0) {
    for (int i = 0; i != 5; ++i) std::thread{[] { weft::sync_wait(nap(50ms)); }}.join();
    const bool forgotten = !weft::real_clock().cancel(another);
    _exit(mine.rings == 1 && forgotten ? 17 : 1);
  }
  hold.released = true;
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 17);
  EXPECT_TRUE(weft::real_clock().cancel(another));
  test::until([&] { return over && mine.rings == 1; });
}

// exit() comes while timers are armed, and from the clock's own thread.
TEST(real_clock, a_process_may_end_with_timers_armed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        static alarm never;
        weft::real_clock().arm(never, weft::real_clock().now() + 1h);
        weft::sync_wait(nap(1ms));
        std::exit(3);
      },
      testing::ExitedWithCode(3), "");
  EXPECT_EXIT(
      {
        struct last : weft::timer {
          last() : timer{[](timer&) noexcept { std::exit(4); }} {}
        };
        static last one;
        weft::real_clock().arm(one, {});
        for (;;) pause();
      },
      testing::ExitedWithCode(4), "");
}

// None of them has a thread of the clock's go on, for which exit() would wait for ever.
TEST(real_clock, a_process_may_end_while_other_threads_sleep) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (int i = 0; i != 20; ++i)
    EXPECT_EXIT(
        {
          for (int t = 0; t != 3; ++t)
            std::thread{[] {
              for (;;) weft::sync_wait(nap(20us));
            }}.detach();
          weft::sync_wait(nap(2ms));
          std::exit(5);
        },
        testing::ExitedWithCode(5), "");
}

}  // namespace

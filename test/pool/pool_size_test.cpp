// How many threads of a pool are awake at once: of one with more threads than processors, and below a limit.
#include "pool/pool_size.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <latch>
#include <memory>
#include <thread>
#include <utility>
#include <vector>
#include <weft/combine.hpp>
#include <weft/pool.hpp>
#include <weft/scope.hpp>

#include "sched/idle_set.hpp"
#include "support/weft_test.hpp"

namespace {

using weft::pool;
using weft::start_on;
using weft::sync_wait;
using weft::task;
using weft::when_all;
using weft::detail::crowd;
using weft::detail::idle_set;
using weft::detail::idler;
using weft::detail::pool_load;

task<long> fib(int n) {
  if (n < 2) co_return n;
  auto [a, b] = co_await when_all(fib(n - 1), fib(n - 2));
  co_return a + b;
}

// As many tasks as the pool has threads, each with one for itself at the same time: `waits` returns when all are there.
template <class Waits>
void meet_on(const pool& p, Waits waits) {
  std::atomic<unsigned> ran{0};
  auto one = [&]() -> task<> {
    waits();
    ++ran;
    co_return;
  };
  auto all = [&](weft::scope& s) -> task<> {
    for (unsigned i = 0; i != p.size(); ++i) s.fork_on(p.executor(), one);
    co_return;
  };
  sync_wait(weft::with_scope(all));
  EXPECT_EQ(ran, p.size());
}

// ---- more threads than processors -------------------------------------------------------------------------------------------

constexpr double period = 1e6;

TEST(pool_crowd, begins_with_a_thread_a_processor) {
  EXPECT_EQ((crowd{16, 2}.most_awake()), 2u);
  EXPECT_EQ((crowd{2, 4}.most_awake()), 2u);
}

TEST(pool_crowd, while_those_awake_compute_there_are_no_more) {
  crowd two{16, 2};
  const pool_load computes{.nanoseconds = period, .can_run = 2, .processor_time = 2 * period, .awake = 2};
  for (int i = 0; i != 20; ++i) EXPECT_EQ(two.next(computes), 2u);
  const pool_load beside_others{.nanoseconds = period, .can_run = 2, .processor_time = period, .awake = 2};
  for (int i = 0; i != 20; ++i) EXPECT_EQ(two.next(beside_others), 2u) << "none waits for anything but a processor";
}

TEST(pool_crowd, while_they_wait_for_something_else_and_a_processor_is_idle_there_are_twice_as_many) {
  crowd two{12, 2};
  const auto block = [](unsigned awake) -> pool_load {
    return {
        .nanoseconds = period, .can_run = 0.1 * awake, .processor_time = 0.1 * awake * period, .awake = 1.0 * awake};
  };
  EXPECT_EQ(two.next(block(2)), 4u);
  EXPECT_EQ(two.next(block(4)), 8u);
  EXPECT_EQ(two.next(block(8)), 12u);
  EXPECT_EQ(two.next(block(12)), 12u);
  // Those that block now and then, and leave no processor idle, stay.
  EXPECT_EQ(two.next({.nanoseconds = period, .can_run = 4, .processor_time = 1.9 * period, .awake = 12}), 12u);
  // As many more as there are idle processors for.
  crowd other{12, 8};
  EXPECT_EQ(other.next({.nanoseconds = period, .can_run = 6.4, .processor_time = 6.4 * period, .awake = 8}), 10u);
}

TEST(pool_crowd, when_they_compute_again_half_of_those_beyond_go_each_time) {
  crowd two{16, 2};
  for (int i = 0; i != 3; ++i) two.next({.nanoseconds = period, .awake = 16});
  ASSERT_EQ(two.most_awake(), 16u);
  const auto compute = [](unsigned awake) -> pool_load {
    return {.nanoseconds = period, .can_run = 1.0 * awake, .processor_time = 2 * period, .awake = 1.0 * awake};
  };
  for (const unsigned left : {9u, 6u, 4u, 3u, 2u, 2u}) EXPECT_EQ(two.next(compute(two.most_awake())), left);
}

TEST(pool_crowd, each_that_has_got_nowhere_for_long_has_another_in_its_place) {
  crowd two{5, 2};
  pool_load computes{.nanoseconds = period, .can_run = 2, .processor_time = 2 * period, .awake = 2};
  computes.standing = 1;
  EXPECT_EQ(two.next(computes), 3u);
  EXPECT_EQ(two.next(computes), 3u);
  computes.standing = 2;
  EXPECT_EQ(two.next(computes), 4u);
  computes.standing = 9;
  EXPECT_EQ(two.next(computes), 5u) << "there are no more";
  computes.standing = 0;
  EXPECT_EQ(two.next(computes), 4u);
}

TEST(pool_crowd, who_watches_looks_soon_and_then_ever_later) {
  crowd two{4, 2};
  const auto first = two.next_nap(false);
  EXPECT_EQ(first, crowd::first_nap);
  EXPECT_EQ(two.next_nap(true), 2 * first);
  EXPECT_EQ(two.next_nap(true), 4 * first);
  for (int i = 0; i != 20; ++i) two.next_nap(true);
  EXPECT_EQ(two.next_nap(true), std::chrono::milliseconds{5});
  EXPECT_EQ(two.next_nap(false), first);
}

// Of four workers two may be awake.
struct awake_two : testing::Test {
  idle_set all{4, 2};
  std::array<idler, 4> one;
};

TEST_F(awake_two, who_is_beyond_sleeps_on_beside_what_was_posted_while_one_watches) {
  EXPECT_EQ(all.pick(), nullptr) << "none is inside";
  const auto third = all.enter(one[2], false);
  EXPECT_TRUE(third.watches);
  EXPECT_TRUE(third.enough);
  const auto fourth = all.enter(one[3], false);
  EXPECT_FALSE(fourth.watches);
  EXPECT_TRUE(fourth.enough);
  EXPECT_EQ(all.pick(), nullptr);
  EXPECT_EQ(all.pick(true), nullptr);

  EXPECT_FALSE(all.enter(one[1], false).enough) << "there would be one";
  EXPECT_EQ(all.pick(true), nullptr) << "one watches";
  EXPECT_EQ(all.pick(), &one[1]);
  EXPECT_EQ(all.pick(), nullptr) << "it searches";
  EXPECT_FALSE(all.stop_search()) << "enough are awake";
  EXPECT_EQ(all.pick(), nullptr);
  EXPECT_FALSE(all.too_many());
}

TEST_F(awake_two, where_none_watches_one_is_woken_for_that) {
  all.enter(one[2], false);
  all.enter(one[3], false);
  ASSERT_TRUE(all.leave(one[2])) << "the one that watches, by itself";
  EXPECT_TRUE(all.too_many());
  EXPECT_FALSE(all.start_search()) << "one more would";
  EXPECT_TRUE(all.stop_search()) << "nobody watches";
  EXPECT_EQ(all.pick(), &one[3]);
  const auto again = all.enter(one[3], true);
  EXPECT_TRUE(again.watches);
  EXPECT_TRUE(again.enough);
  EXPECT_EQ(all.pick(), nullptr);
}

TEST_F(awake_two, one_that_is_meant_by_name_is_woken_however_many_are_awake) {
  all.enter(one[2], false);
  all.enter(one[3], false);
  EXPECT_TRUE(all.pick(one[3]));
  EXPECT_TRUE(all.too_many());
  EXPECT_EQ(all.pick_any(), &one[2]);
}

TEST_F(awake_two, how_many_may_be_awake_changes_while_another_one_watches) {
  all.enter(one[2], false);
  all.enter(one[3], false);
  all.leave(one[2]);
  ASSERT_TRUE(all.enter(one[1], false).watches);
  for (const unsigned most : {4u, 1u, 3u, 4u, 2u, 3u}) {
    all.let_wake(most);
    EXPECT_EQ(all.may_be_awake(), most);
    EXPECT_EQ(all.too_many(), most < 2);  // [0] and [2]
  }
  EXPECT_EQ(all.pick(), nullptr) << "[2] searches";
  EXPECT_TRUE(all.stop_search());
  EXPECT_EQ(all.pick(), &one[1]) << "three may";
  EXPECT_TRUE(all.stop_search()) << "nobody watches";
  EXPECT_FALSE(all.enter(one[2], false).last);
  EXPECT_FALSE(all.enter(one[1], false).last);
  const auto last = all.enter(one[0], false);
  EXPECT_TRUE(last.last);
  EXPECT_FALSE(last.enough);
}

// More threads than processors, whatever this machine has.
unsigned many() { return 3 * weft::available_processors(); }

TEST(pool_crowd, as_many_as_there_are_threads_block_at_once) {
  const pool p{{.threads = many()}};
  for (int round = 0; round != test::rounds(20); ++round) {
    std::latch all_are_here{p.size()};
    meet_on(p, [&] { all_are_here.arrive_and_wait(); });
  }
}

TEST(pool_crowd, or_wait_for_each_other_on_their_processors) {
  const pool p{{.threads = many()}};
  std::atomic<unsigned> here{0};
  meet_on(p, [&] {
    ++here;
    while (here.load() != p.size()) {
    }
  });
}

TEST(pool_crowd, a_caller_is_one_of_those_that_block) {
  pool p{{.threads = many(), .use_caller = true}};
  std::latch all_are_here{p.size()};
  std::atomic<unsigned> ran{0};
  auto one = [&]() -> task<> {
    all_are_here.arrive_and_wait();
    ++ran;
    co_return;
  };
  auto all = [&](weft::scope& s) -> task<> {
    for (unsigned i = 0; i != p.size(); ++i) s.fork_on(p.executor(), one);
    co_return;
  };
  const auto whole = [&]() -> task<> { co_await weft::with_scope(all); };
  p.run(whole());
  EXPECT_EQ(ran, p.size());
}

// What each worker is to do next is not stolen, unless it gets nowhere: here all of those awake wait for just that.
TEST(pool_crowd, what_a_blocked_worker_is_to_do_next_is_taken_over) {
  const pool p{{.threads = many()}};
  const unsigned processors = weft::available_processors();
  std::atomic<unsigned> ran{0};
  const auto child = [&](std::latch& done) -> task<> {
    done.count_down();
    co_return;
  };
  auto parent = [&]() -> task<> {
    std::latch done{1};
    weft::start(p.executor(), child(done), [](weft::result<void>) {});
    done.wait();
    ++ran;
    co_return;
  };
  auto all = [&](weft::scope& s) -> task<> {
    for (unsigned i = 0; i != processors; ++i) s.fork_on(p.executor(), parent);
    co_return;
  };
  sync_wait(weft::with_scope(all));
  EXPECT_EQ(ran, processors);
}

TEST(pool_crowd, one_that_sleeps_is_there_for_its_own_jobs_while_enough_compute) {
  const pool p{{.threads = many()}};
  std::atomic<bool> over{false};
  auto computes = [&]() -> task<> {
    while (!over.load()) co_await weft::yield();
  };
  const auto which = [&]() -> task<unsigned> { co_return p.worker_id(); };
  auto all = [&](weft::scope& s) -> task<> {
    for (unsigned i = 0; i != 2 * p.size(); ++i) s.fork_on(p.executor(), computes);
    for (unsigned i = 0; i != p.size(); ++i) EXPECT_EQ(co_await start_on(p.worker(i), which()), i);
    over = true;
  };
  sync_wait(weft::with_scope(all));
}

// ---- limit_awake ------------------------------------------------------------------------------------------------------------

TEST(pool_crowd, a_limit_is_for_the_few_and_for_the_many) {
  crowd many{16, 2};
  EXPECT_EQ(many.limit(1), 1u);
  EXPECT_TRUE(many.is_limited());
  const pool_load block{.nanoseconds = period, .awake = 1, .standing = 1};
  const pool_load compute{.nanoseconds = period, .can_run = 1, .processor_time = period, .awake = 1};
  EXPECT_EQ(many.next(block), 1u);
  EXPECT_EQ(many.next(compute), 1u);
  EXPECT_EQ(many.limit(6), 2u) << "no more than processors are of use";
  for (int i = 0; i != 5; ++i) many.next(block);
  EXPECT_EQ(many.most_awake(), 6u);
  EXPECT_EQ(many.limit(3), 3u);
  EXPECT_EQ(many.limit(0), 3u);
  EXPECT_FALSE(many.is_limited());
  EXPECT_EQ(many.limit(99), 3u);
  EXPECT_FALSE(many.is_limited());
  crowd few{3, 4};
  EXPECT_EQ(few.limit(2), 2u);
  EXPECT_EQ(few.limit(1), 1u);
  EXPECT_EQ(few.limit(3), 3u);
}

// Whether only so many of them run, and the others sleep: what happened while 5000 jobs were run.
bool only_so_many_run(const pool& p, unsigned most) {
  std::vector<weft::pool_stats> before;
  for (unsigned i = 0; i != p.size(); ++i) before.push_back(p.stats(i));
  const auto jobs = p.stats().jobs;
  test::until([&] { return p.stats().jobs > jobs + 5000; });
  unsigned asleep = 0;
  for (unsigned i = 0; i != p.size(); ++i) {
    const weft::pool_stats now = p.stats(i);
    asleep += now.jobs == before[i].jobs && now.asleep > before[i].asleep;
  }
  return asleep >= p.size() - most;
}

TEST(pool_limit, those_too_many_leave_what_they_have_to_the_others_and_sleep) {
  for (const unsigned threads : {2u, 3u, many()}) {
    pool p{{.threads = threads}};
    std::atomic<bool> over{false};
    std::atomic<unsigned> ended{0};
    auto yields = [&]() -> task<> {
      while (!over.load()) co_await weft::yield();
    };
    for (unsigned i = 0; i != 4 * threads; ++i) weft::start(p.executor(), yields(), [&](auto) { ++ended; });
    for (const unsigned most : {1u, 2u, 1u}) {
      p.limit_awake(most);
      test::until([&] { return only_so_many_run(p, most); });
    }
    over = true;
    test::until([&] { return ended.load() == 4 * threads; });
  }
}

TEST(pool_limit, more_run_at_once_when_it_is_raised) {
  for (const unsigned threads : {2u, 5u, many()})
    for (const unsigned raised : {threads, threads + 7, 0u}) {
      pool p{{.threads = threads}};
      p.limit_awake(1);
      EXPECT_EQ(sync_wait(start_on(p.executor(), fib(10))), 55);
      std::latch all_are_here{threads};
      std::atomic<unsigned> here{0}, passed{0};
      auto meets = [&]() -> task<> {
        ++here;
        all_are_here.arrive_and_wait();
        ++passed;
        co_return;
      };
      for (unsigned i = 0; i != threads; ++i) weft::start(p.executor(), meets(), [](auto) {});
      test::until([&] { return here.load() != 0; });
      p.limit_awake(raised);
      test::until([&] { return passed.load() == threads; });
    }
}

TEST(pool_limit, a_worker_runs_what_is_for_it_alone_in_spite_of_it) {
  pool p{{.threads = 4}};
  p.limit_awake(1);
  std::latch door{1};
  std::atomic<bool> inside{false};
  auto blocks = [&]() -> task<> {
    inside = true;
    door.wait();
    co_return;
  };
  const auto which = [&]() -> task<unsigned> { co_return p.worker_id(); };
  weft::start(p.worker(0), blocks(), [&](auto) { inside = false; });
  test::until([&] { return inside.load(); });
  for (int round = 0; round != test::rounds(50); ++round)
    for (unsigned i = 1; i != p.size(); ++i) EXPECT_EQ(sync_wait(start_on(p.worker(i), which())), i);
  door.count_down();
  test::until([&] { return !inside.load(); });
}

// Forks beyond the slots of a deque, tasks that yield, jobs for one alone; and four threads, and the tasks themselves, that
// limit them at will.
TEST(pool_limit, nothing_is_lost_while_it_changes) {
  for (const bool caller : {false, true}) {
    pool p{{.threads = 4, .use_caller = caller}};
    std::atomic<bool> over{false};
    std::vector<std::jthread> limiting;
    for (unsigned i = 0; i != 4; ++i)
      limiting.emplace_back([&, at = i]() mutable {
        while (!over.load()) {
          p.limit_awake(++at % 6);
          std::this_thread::yield();
        }
      });
    std::atomic<int> ran{0};
    auto tiny = [&]() -> task<> {
      ++ran;
      co_return;
    };
    auto several = [&]() -> task<> {
      p.limit_awake(1);
      for (int i = 0; i != 100; ++i) co_await weft::yield();
      co_await weft::resume_on(p.worker(1));
      ran += co_await start_on(p.executor(), fib(12)) == 144;
    };
    constexpr int tinies = 3000, severals = 50;
    auto all = [&](weft::scope& s) -> task<> {
      for (int i = 0; i != tinies; ++i) s.fork(tiny);
      for (int i = 0; i != severals; ++i) s.fork_on(p.executor(), several);
      co_return;
    };
    const auto here = [&]() -> task<> { co_await weft::with_scope(all); };
    const int rounds = test::rounds(20);
    for (int round = 0; round != rounds; ++round) p.run(here());
    over = true;
    EXPECT_EQ(ran, rounds * (tinies + severals));
  }
}

TEST(pool_limit, where_only_callers_work_there_is_nothing_to_limit) {
  pool p{{.threads = 1, .use_caller = true}};
  for (const unsigned most : {0u, 1u, 2u}) {
    p.limit_awake(most);
    EXPECT_EQ(p.run(fib(10)), 55);
  }
}

TEST(pool_limit, a_pool_ends_below_it) {
  for (int round = 0; round != test::rounds(50); ++round)
    for (const unsigned threads : {1u, 2u, 6u}) {
      {
        pool unused{{.threads = threads}};
        unused.limit_awake(1);
      }
      std::atomic<int> ran{0};
      auto yields = [&]() -> task<> {
        for (int i = 0; i != 100; ++i) co_await weft::yield();
        ++ran;
      };
      auto p = std::make_unique<pool>(weft::pool_options{.threads = threads});
      for (int i = 0; i != 20; ++i) weft::start(p->executor(), yields(), [](auto) {});
      p->limit_awake(1);
      if (round % 2 == 0) {
        p.reset();
      } else {  // by one of its own threads
        std::atomic<bool> over{false};
        const auto ends_it = [](std::unique_ptr<pool> mine) -> task<> {
          co_await weft::yield();
          mine.reset();
        };
        weft::executor& there = p->executor();
        weft::start(there, ends_it(std::move(p)), [&](auto) { over = true; });
        test::until([&] { return over.load() && ran.load() == 20; });
      }
      EXPECT_EQ(ran, 20);
    }
}

}  // namespace

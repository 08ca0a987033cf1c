#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <latch>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>
#include <weft/combine.hpp>
#include <weft/fiber.hpp>
#include <weft/pool.hpp>
#include <weft/scope.hpp>
#include <weft/sync.hpp>

#include "support/weft_test.hpp"
#include "support/work.hpp"

namespace {

using namespace std::chrono_literals;
using test::work;
using weft::job;
using weft::pool;
using weft::start_on;
using weft::strand;
using weft::sync_wait;
using weft::task;
using weft::worker_group;

// ---- a worker by its number -----------------------------------------------------------------------------------------------

WEFT_TEST("worker_group: a task runs on just that thread, whoever wakes it") {
  const worker_group group{3};
  EXPECT_EQ(group.size(), 3u);
  EXPECT_EQ(group.worker_id(), 3u) << "this thread is none of them";
  const auto stays = [&](unsigned which) -> task<int> {
    int wrong = 0;
    for (int i = 0; i != test::rounds(500); ++i) {
      wrong += group.worker_id() != which;
      co_await weft::yield();
      wrong += group.worker_id() != which;
      co_await weft::resume_on(group.worker((which + 1) % 3));
      wrong += group.worker_id() != (which + 1) % 3;
      co_await weft::resume_on(group.worker(which));
    }
    co_return wrong;
  };
  std::vector<task<int>> all;
  for (unsigned i = 0; i != 12; ++i) all.push_back(start_on(group.worker(i % 3), stays(i % 3)));
  const std::vector<int> wrong = co_await weft::when_all(std::move(all));
  EXPECT_EQ(std::ranges::count(wrong, 0), 12);
}

WEFT_TEST("worker_group: children of a when_all stay on their worker") {
  const worker_group group{4};
  int leaves = 0;  // plain: one thread
  const auto leaf = [&](auto& self, int depth) -> task<> {
    if (depth == 0) {
      leaves += group.worker_id() == 2;
      co_await weft::yield();
      co_return;
    }
    co_await weft::when_all(self(self, depth - 1), self(self, depth - 1));
  };
  co_await start_on(group.worker(2), leaf(leaf, 8));
  EXPECT_EQ(leaves, 256);
}

// One that yields for ever is behind what others post to its worker after it has begun.
TEST(worker_group, one_that_yields_does_not_starve_what_others_post) {
  weft::worker_group group{2};
  std::atomic<bool> ran{false};
  std::latch begun{1}, ended{1};
  const auto spins = [&]() -> weft::task<> {
    begun.count_down();
    while (!ran) co_await weft::yield();
  };
  weft::start(group.worker(0), spins(), [&](weft::result<void>) { ended.count_down(); });
  begun.wait();
  const auto sets = [&]() -> weft::task<> {
    ran = true;
    co_return;
  };
  weft::start(group.worker(0), sets(), [](weft::result<void>) {});
  ended.wait();
  EXPECT_TRUE(ran);
}

TEST(worker_group, runs_the_jobs_of_one_worker_in_order_of_posting) {
  worker_group group{2};
  std::vector<int> order;  // plain: one thread
  std::vector<work> jobs;
  jobs.reserve(1000);
  std::latch over{1};
  for (int i = 0; i != 1000; ++i)
    jobs.emplace_back([&, i] {
      order.push_back(i);
      if (i == 999) over.count_down();
    });
  for (auto& one : jobs) group.worker(1).post(one);
  over.wait();
  group.shutdown();
  EXPECT_TRUE(std::ranges::is_sorted(order));
  EXPECT_EQ(order.size(), 1000u);
}

TEST(worker_group, a_job_at_a_time_wakes_just_that_worker_each_time) {
  const worker_group group{3};
  for (unsigned i = 0; i != static_cast<unsigned>(test::rounds(3000)); ++i) {
    std::atomic<unsigned> where{99};
    work one{[&] { where = group.worker_id(); }};
    group.worker(i % 3).post(one);
    test::until([&] { return where != 99; });
    EXPECT_EQ(where, i % 3);
  }
}

// Each job posts to the next worker, from inside and from outside, with more threads than cores; then the end.
TEST(worker_group, loses_nothing_that_many_post_and_ends_when_all_is_done) {
  for (int round = 0; round != 5; ++round) {
    const int each = test::rounds(2000);
    constexpr unsigned workers = 5;
    std::atomic<int> ran{0}, wrong{0};
    struct traveller : job {
      const worker_group* group;
      std::atomic<int>*ran, *wrong;
      unsigned at, left;
    };
    std::vector<std::vector<traveller>> all(3);
    {
      const worker_group group{workers};
      std::vector<std::jthread> posters;
      for (auto& mine : all) {
        mine.resize(static_cast<std::size_t>(each));
        posters.emplace_back([&] {
          for (unsigned i = 0; auto& one : mine) {
            one.group = &group, one.ran = &ran, one.wrong = &wrong, one.at = i++ % workers, one.left = 3;
            one.run = [](job& self) noexcept {
              auto& mine = static_cast<traveller&>(self);
              *mine.wrong += mine.group->worker_id() != mine.at;
              ++*mine.ran;
              if (mine.left-- == 0) return;
              mine.at = (mine.at + mine.left) % mine.group->size();  // once the same
              mine.group->worker(mine.at).post(mine);
            };
            group.worker(one.at).post(one);
          }
        });
      }
      posters.clear();
    }
    EXPECT_EQ(ran, 3 * each * 4);
    EXPECT_EQ(wrong, 0);
  }
}

WEFT_TEST("worker_group: a pool's own work and that for one worker do not starve each other") {
  for (const unsigned threads : {1u, 2u}) {
    const pool p{{.threads = threads}};
    std::atomic<int> pinned{0}, free{0};
    const auto spins = [&](std::atomic<int>& mine, std::atomic<int>& other) -> task<> {
      while (other < 1000) {  // ends when the other one has had its turns
        ++mine;
        co_await weft::yield();
      }
      mine += 1000;
    };
    co_await weft::when_all(start_on(p.worker(0), spins(pinned, free)), start_on(p.executor(), spins(free, pinned)),
                            start_on(p.executor(), spins(free, pinned)));
    EXPECT_GE(pinned, 1000);
    EXPECT_GE(free, 1000);
  }
}

WEFT_TEST("worker_group: a strand stands on one worker") {
  worker_group group{2};
  strand one{group.worker(1)};
  const auto where = [&]() -> task<unsigned> { co_return group.worker_id(); };
  EXPECT_EQ(co_await start_on(one, where()), 1u);
  auto never_ends = []() -> task<> {
    for (;;) co_await weft::yield();
  };
  std::latch over{2};
  weft::start(one, never_ends(), [&](weft::result<void> r) {
    EXPECT_TRUE(r.is_stopped());
    over.count_down();
  });
  weft::start(group.worker(0), never_ends(), [&](weft::result<void> r) {
    EXPECT_TRUE(r.is_stopped());
    over.count_down();
  });
  group.shutdown(weft::pool_shutdown::cancel);
  EXPECT_TRUE(over.try_wait());
}

// ---- what a pool tells ------------------------------------------------------------------------------------------------------

WEFT_TEST("pool_stats: count what was done") {
  const pool p{{.threads = 2}};
  const auto yields = [&]() -> task<> {
    for (int i = 0; i != 100; ++i) co_await weft::yield();
  };
  co_await start_on(p.executor(), yields());
  const auto fib = [](auto& self, int n) -> task<int> {
    if (n < 2) co_return n;
    const auto [a, b] = co_await weft::when_all(self(self, n - 1), self(self, n - 2));
    co_return a + b;
  };
  co_await start_on(p.executor(), fib(fib, 20));
  const weft::pool_stats all = p.stats();
  EXPECT_GE(all.jobs, 102u);
  EXPECT_GE(all.from_outside, 2u);
  EXPECT_LE(all.from_outside, all.jobs);
  EXPECT_LE(all.wakes, p.stats().sleeps) << "a sleep is counted before what ends it";
  EXPECT_GT(all.awake.count(), 0);
  const weft::pool_stats a = p.stats(0), b = p.stats(1);
  EXPECT_GE(a.jobs + b.jobs, all.jobs) << "they only grow";
}

// So many tasks are alive there, and as many have ended as have begun when all are through.
void expect_live(const pool& p, std::int64_t live) {
  test::until([&] {
    std::int64_t sum = 0;
    for (unsigned i = 0; i != p.size(); ++i) sum += p.stats(i).live;
    const weft::pool_stats all = p.stats();
    return all.live == live && sum == live && all.begun - all.ended == static_cast<std::uint64_t>(live);
  });
}

// Forks that run at once, that others take, from outside, fibers, and those of a strand: each is alive while it waits.
TEST(pool_stats, tell_how_many_tasks_are_alive) {
  for (const unsigned threads : {1u, 3u}) {
    const pool p{{.threads = threads}};
    expect_live(p, 0);
    strand line{p.executor()};
    weft::event open;
    const auto waits = [&]() -> task<> { co_await open.wait(); };
    const auto fiber_waits = [&] { weft::await(open.wait()); };
    const auto ends = []() -> task<> { co_return; };
    const auto make = [&](weft::scope& s) -> task<> {
      for (int i = 0; i != 100; ++i) {
        s.fork(waits);
        s.fork(ends);
        s.go(fiber_waits);
        s.fork_on(line, waits);
      }
      co_return;
    };
    std::jthread opener{[&] {
      expect_live(p, 301);  // with the one beside; the body has ended
      open.set();
    }};
    const auto beside = [&]() -> task<> { co_await open.wait(); };
    weft::latch over{1};
    weft::start(p.executor(), beside(), [&](const weft::result<void>&) { over.count_down(); });
    sync_wait(weft::with_scope({.executor = &p.executor()}, make));
    sync_wait(over.wait());
    expect_live(p, 0);
    EXPECT_GE(p.stats().begun, 302u);  // with the body; those that end at once may be run within fork()
  }
}

// However a task leaves: by its end, by a stop, for another executor, and home again.
TEST(pool_stats, a_task_that_leaves_is_alive_elsewhere) {
  const pool here{{.threads = 2}}, there{{.threads = 2}};
  weft::event open;
  const auto goes = [&]() -> task<> {
    co_await weft::resume_on(there.executor());
    co_await open.wait();
  };
  weft::event closed;
  const auto never = [&]() -> task<> { co_await closed.wait(); };
  const auto fails = []() -> task<> {
    co_await weft::yield();
    throw std::runtime_error{"fails"};
  };
  const auto some = [&](weft::scope& s) -> task<> {
    for (int i = 0; i != 20; ++i) s.fork(goes);
    co_await weft::when_any(start_on(there.executor(), never()), fails());
  };
  const auto any = [&]() -> task<> {
    const auto waits = [&]() -> task<> { co_await open.wait(); };
    co_await weft::when_any(waits(), weft::yield(), waits());
  };
  std::jthread opener{[&] {
    expect_live(there, 20);
    expect_live(here, 0);
    open.set();
  }};
  sync_wait(weft::with_scope({.executor = &here.executor(), .on_error = weft::collect_all_errors},
                             [&](weft::scope& s) -> task<> {
                               for (int i = 0; i != 20; ++i) s.fork(goes);
                               co_return;
                             }));
  EXPECT_THROW(sync_wait(weft::with_scope({.executor = &here.executor()}, some)), std::runtime_error);
  sync_wait(start_on(here.executor(), any()));
  expect_live(here, 0);
  expect_live(there, 0);
  EXPECT_GE(here.stats().begun, 20u * 3);
}

// Of a when_all, those that have waited or were taken.
WEFT_TEST("pool_stats: a child that runs as if it was called is no task of its own") {
  const pool p{{.threads = 1}};
  const auto one = []() -> task<> { co_return; };
  const auto waits = []() -> task<> { co_await weft::yield(); };
  const auto none_waits = [&]() -> task<> { co_await weft::when_all(one(), one(), one()); };
  const auto two_wait = [&]() -> task<> { co_await weft::when_all(waits(), one(), waits()); };
  co_await start_on(p.executor(), none_waits());
  EXPECT_EQ(p.stats().begun, 1u);
  co_await start_on(p.executor(), two_wait());
  EXPECT_GE(p.stats().begun, 4u);
  EXPECT_EQ(p.stats().live, 0);
  EXPECT_EQ(p.stats().begun, p.stats().ended);
}

// Read while all are at work, and while all sleep.
TEST(pool_stats, are_read_without_stopping_anybody) {
  const pool p{{.threads = 4}};
  std::atomic<bool> stop{false};
  std::jthread reader{[&] {
    std::uint64_t before = 0;
    while (!stop) {
      const std::uint64_t jobs = p.stats().jobs;
      EXPECT_GE(jobs, before);
      before = jobs;
    }
  }};
  const auto yields = [&]() -> task<> {
    for (int i = 0; i != test::rounds(20'000); ++i) co_await weft::yield();
  };
  sync_wait(start_on(p.executor(), yields()));
  stop = true;
  reader.join();
  test::until([&] { return p.stats().sleeps >= 4; });
  const weft::pool_stats now = p.stats();
  EXPECT_EQ(now.waiting, 0u);
  test::until([&] { return p.stats().asleep > now.asleep; });  // also those that have not woken since
}

TEST(pool_stats, what_a_worker_has_taken_up_waits_there) {
  constexpr std::size_t posted = 100;
  for (const bool alone : {true, false}) {
    const pool p{{.threads = alone ? 1u : 2u}};
    weft::executor& there = alone ? p.executor() : p.worker(0);
    std::atomic<bool> holds{false}, ends{false};
    std::atomic<std::size_t> most{0};
    const auto hold = [&]() -> task<> {
      holds = true;
      test::until([&] { return ends.load(); });
      co_return;
    };
    const auto look = [&]() -> task<> {
      most = std::max(most.load(), p.stats(0).waiting);
      co_return;
    };
    weft::start(there, hold(), [](const weft::result<void>&) {});
    test::until([&] { return holds.load(); });
    for (std::size_t i = 0; i != posted; ++i) weft::start(there, look(), [](const weft::result<void>&) {});
    ends = true;
    sync_wait(start_on(there, look()));
    EXPECT_GE(most, posted - 1) << "those behind the first";
    EXPECT_LE(most, posted);
    EXPECT_EQ(p.stats(0).waiting, 0u);
  }
}

// All workers are at a job that lasts, so nobody has taken anything: what waits is seen all the same.
TEST(pool_stats, what_nobody_has_taken_waits_for_any) {
  for (const unsigned threads : {1u, 2u}) {
    pool p{{.threads = threads, .priorities = 3}};
    std::latch go_on{1};
    std::atomic<unsigned> held{0};
    std::atomic<int> ran{0};
    std::vector<std::unique_ptr<work>> all;
    const auto post = [&](weft::executor& there, const std::function<void()>& body) {
      there.post(*all.emplace_back(std::make_unique<work>(body)));
    };
    const auto runs = [&] { ++ran; };
    for (unsigned i = 0; i != threads; ++i)
      post(p.worker(i), [&] {
        ++held;
        go_on.wait();
      });
    test::until([&] { return held == threads; });
    EXPECT_EQ(p.stats().waiting, 0u);
    for (int i = 0; i != 100; ++i) post(p.executor(), runs);
    EXPECT_EQ(p.stats().waiting, 100u);
    for (int i = 0; i != 20; ++i) post(p.executor(0), runs), post(p.executor(2), runs);
    EXPECT_EQ(p.stats().waiting, 140u);
    EXPECT_EQ(p.stats(0).waiting, 0u);
    for (int i = 0; i != 7; ++i) post(p.worker(0), runs);
    EXPECT_EQ(p.stats(0).waiting, 7u);
    EXPECT_EQ(p.stats().waiting, 147u);
    go_on.count_down();
    p.shutdown();
    EXPECT_EQ(ran, 147);
    EXPECT_EQ(p.stats().waiting, 0u);
  }
}

TEST(pool_hooks, are_called_on_each_thread) {
  struct seen {
    std::atomic<unsigned> started{0}, stopped{0}, idle{0};
    const pool* of = nullptr;
  } all;
  {
    pool p{{.threads = 3,
            .on_start = [](unsigned worker, void* with) { static_cast<seen*>(with)->started += 1u << (8 * worker); },
            .on_stop = [](unsigned worker, void* with) { static_cast<seen*>(with)->stopped += 1u << (8 * worker); },
            .on_idle = [](unsigned, void* with) { ++static_cast<seen*>(with)->idle; },
            .with = &all}};
    test::until([&] { return all.idle >= 3; });
    EXPECT_EQ(all.stopped, 0u);
  }
  EXPECT_EQ(all.started, 0x010101u) << "once each";
  EXPECT_EQ(all.stopped, 0x010101u);
}

TEST(pool_hooks, a_caller_calls_them_around_what_it_runs) {
  using seen = std::vector<std::string>;  // plain: one thread
  seen calls;
  const pool p{
      {.threads = 1,
       .use_caller = true,
       .on_start = [](unsigned n, void* with) { static_cast<seen*>(with)->push_back("start " + std::to_string(n)); },
       .on_stop = [](unsigned n, void* with) { static_cast<seen*>(with)->push_back("stop " + std::to_string(n)); },
       .with = &calls}};
  const auto work = [&]() -> task<> {
    calls.emplace_back("work");
    co_return;
  };
  EXPECT_EQ(calls, seen{});
  p.run(work());
  p.run(work());
  EXPECT_EQ(calls, (seen{"start 0", "work", "stop 0", "start 0", "work", "stop 0"}));
}

// The worker that is in it counts as one that looks for jobs no more.
TEST(pool_hooks, on_idle_may_take_long) {
  static std::atomic<bool> takes_long, is_in, has_run;
  for (std::atomic<bool>* one : {&takes_long, &is_in, &has_run}) *one = false;
  pool p{{.threads = 2, .on_idle = [](unsigned, void*) {
            if (!takes_long.exchange(false)) return;
            is_in = true;
            const auto until = std::chrono::steady_clock::now() + std::chrono::seconds{5};
            while (!has_run && std::chrono::steady_clock::now() < until) std::this_thread::yield();
            EXPECT_TRUE(has_run);
          }}};
  const auto asks = []() -> task<> {
    takes_long = true;
    co_return;
  };
  const auto runs = []() -> task<> {
    has_run = true;
    co_return;
  };
  std::this_thread::sleep_for(std::chrono::milliseconds{20});  // both sleep, or the test says less
  weft::start(p.executor(), asks(), [](weft::result<void>) {});
  while (!is_in) std::this_thread::yield();
  weft::start(p.executor(), runs(), [](weft::result<void>) {});
  while (!has_run) std::this_thread::yield();
}

TEST(pool_hooks, on_idle_may_post) {
  struct state {
    pool* of = nullptr;
    std::atomic<bool> ready{false}, posted{false};
    std::latch over{1};
    work last{[this] { over.count_down(); }};
  } all;
  pool p{{.threads = 1,
          .on_idle =
              [](unsigned, void* with) {
                auto& mine = *static_cast<state*>(with);
                if (mine.ready && !mine.posted.exchange(true)) mine.of->executor().post(mine.last);
              },
          .with = &all}};
  all.of = &p;
  all.ready = true;
  work wakes{[] {}};
  p.executor().post(wakes);
  all.over.wait();
  p.shutdown();
}

class worker_group_misuse : public testing::Test {
 protected:
  worker_group_misuse() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(worker_group_misuse, a_worker_that_there_is_not) {
  const auto asks = [] { static_cast<void>(worker_group{1}.worker(1)); };
  EXPECT_DEATH(asks(), "weft: a worker was asked for that the pool does not have");
}

TEST_F(worker_group_misuse, a_post_after_the_end) {
  const auto late = [] {
    worker_group group{1};
    group.shutdown();
    work one{[] {}};
    group.worker(0).post(one);
  };
  EXPECT_DEATH(late(), "weft: a job was posted to a pool that has shut down");
}

}  // namespace

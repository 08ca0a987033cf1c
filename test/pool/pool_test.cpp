#include <weft/pool.hpp>

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <latch>
#include <memory>
#include <mutex>
#include <numeric>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>
#include <weft/combine.hpp>
#include <weft/future.hpp>
#include <weft/scope.hpp>
#include <weft/sync.hpp>
#include <weft/with.hpp>

#include "base/count.hpp"
#include "core/worker.hpp"
#include "pool/processors.hpp"
#include "pool/steal_pace.hpp"
#include "pool/yield_before_park.hpp"
#include "support/weft_test.hpp"
#include "support/work.hpp"

namespace {

using namespace std::chrono_literals;
using test::work;
using weft::job;
using weft::pool;
using weft::start_on;
using weft::sync_wait;
using weft::task;

// ---- what it is -----------------------------------------------------------------------------------------------------

TEST(pool, has_as_many_threads_as_it_was_told) {
  for (const unsigned threads : {1u, 2u, 7u}) {
    const pool p{{.threads = threads}};
    EXPECT_EQ(p.size(), threads);
  }
  const pool p;
  EXPECT_EQ(p.size(), weft::available_processors());
  EXPECT_GE(p.size(), 1u);
  EXPECT_TRUE(p.executor().runs_in_parallel());
}

// An executor of one's own that hands on to pools: what is posted to it is a task of none of them, which goes on anywhere.
TEST(pool, is_handed_jobs_by_an_executor_of_ones_own) {
  pool one{{.threads = 1}}, other{{.threads = 1}};
  struct in_turns final : weft::executor {
    explicit in_turns(weft::executor& a, weft::executor& b) : to{&a, &b, nullptr} {}
    void post(job& some) noexcept override {
      weft::executor* const next = to[turn++ % to.size()];
      next != nullptr ? next->post(some) : some.run(some);
    }
    std::array<weft::executor*, 3> to;
    std::atomic<std::size_t> turn = 0;
  } all{one.executor(), other.executor()};
  for (int hops = 0; hops != 9; ++hops) {
    auto yields = [&]() -> task<int> {
      for (int i = 0; i != hops; ++i) co_await weft::yield();
      co_return hops;
    };
    EXPECT_EQ(sync_wait(start_on(all, yields())), hops);
  }
  for (const pool* each : {&one, &other}) EXPECT_EQ(each->stats().begun, each->stats().ended);
}

WEFT_TEST("pool: its threads have names") {
  const pool p{{.threads = 1, .name = "a-name-that-is-too-long"}};
  const auto own_name = []() -> task<std::string> {
    char name[32]{};
    pthread_getname_np(pthread_self(), name, sizeof name);
    co_return name;
  };
  EXPECT_EQ(co_await start_on(p.executor(), own_name()), "a-name-that-i-0");
}

// Of which a profiler's is one.
WEFT_TEST("pool: signals of the process are blocked on its threads, those that a thread brings upon itself are not") {
  const pool p{{.threads = 1}};
  const auto blocked = []() -> task<sigset_t> {
    sigset_t mine;
    sigemptyset(&mine);
    pthread_sigmask(SIG_SETMASK, nullptr, &mine);
    co_return mine;
  };
  const sigset_t there = co_await start_on(p.executor(), blocked());
  for (const int one : {SIGINT, SIGTERM, SIGCHLD, SIGALRM, SIGHUP, SIGUSR1})
    EXPECT_TRUE(sigismember(&there, one)) << one;
  for (const int one : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT, SIGPROF})
    EXPECT_FALSE(sigismember(&there, one)) << one;
}

WEFT_TEST("pool: a task runs on it, and who awaits the task stays outside") {
  const pool p{{.threads = 2}};
  const auto inside = [&]() -> task<bool> { co_return p.is_inside(); };
  EXPECT_TRUE(co_await start_on(p.executor(), inside()));
  EXPECT_FALSE(p.is_inside());
}

WEFT_TEST("pool: two run at once") {
  const pool p{{.threads = 2}};
  std::latch both{2};
  const auto meet = [&]() -> task<> {
    both.arrive_and_wait();
    co_return;
  };
  co_await weft::when_all(start_on(p.executor(), meet()), start_on(p.executor(), meet()));
}

// ---- as an executor -------------------------------------------------------------------------------------------------

task<const weft::executor*> where_it_runs() { co_return weft::current_env().executor; }
task<const weft::executor*> where_it_runs_after(const pool& p) {
  co_await weft::resume_on(p);
  co_return weft::current_env().executor;
}
task<> starts_forks(const pool& p, std::vector<const weft::executor*>& seen) {
  auto body = [&](weft::scope& s) -> task<> {
    auto by_task = s.fork_on(p, where_it_runs());
    auto by_function = s.fork_on(p, where_it_runs);
    seen.push_back(co_await std::move(by_task));
    seen.push_back(co_await std::move(by_function));
  };
  co_await weft::with_scope(body);
}

TEST(pool, is_an_executor_wherever_one_is_taken) {
  const pool p{{.threads = 2}};
  const weft::executor* const its = &p.executor();
  std::vector<const weft::executor*> seen;
  seen.push_back(sync_wait(start_on(p, where_it_runs())));
  seen.push_back(sync_wait(where_it_runs() | start_on(p)));
  seen.push_back(sync_wait(where_it_runs_after(p)));
  seen.push_back(
      sync_wait(weft::make_ready_future() | weft::continue_on(p) | weft::then([] { return where_it_runs(); })));
  seen.push_back(weft::as_future(p, where_it_runs()).get());
  seen.push_back(weft::make_ready_future().then(p, [] { return where_it_runs(); }).get());
  sync_wait(starts_forks(p, seen));

  weft::promise<const weft::executor*> of_start, of_detach;
  auto started = of_start.get_future(), detached = of_detach.get_future();
  weft::start(p, where_it_runs(),
              [&](weft::result<const weft::executor*> how) { of_start.set_value(std::move(how).value()); });
  weft::detach(
      p, [](weft::promise<const weft::executor*> to) -> task<> { to.set_value(co_await where_it_runs()); },
      [](std::exception_ptr) {}, std::move(of_detach));
  seen.push_back(started.get());
  seen.push_back(detached.get());

  auto body = [](weft::scope&) { return where_it_runs(); };
  seen.push_back(sync_wait(weft::with_scope({.executor = &p}, body)));
  weft::env there;
  there.executor = &p;
  seen.push_back(sync_wait(weft::with_env(there, where_it_runs)));
  EXPECT_EQ(seen.size(), 12u);
  for (const weft::executor* one : seen) EXPECT_EQ(one, its);
}

TEST(pool, stands_below_a_strand) {
  const pool p{{.threads = 2}};
  weft::strand account{p};
  EXPECT_EQ(sync_wait(start_on(account, where_it_runs())), &account);
  auto inside = [&]() -> task<bool> { co_return p.is_inside() && account.is_inside(); };
  EXPECT_TRUE(sync_wait(start_on(account, inside())));
}

struct own_pool : pool {
  using pool::pool;
};

TEST(pool, is_found_in_options_by_its_address_also_as_a_class_of_ones_own) {
  own_pool p{{.threads = 1}};
  const own_pool& constant = p;
  EXPECT_EQ(weft::env{.executor = &p}.executor, &p.executor());
  EXPECT_EQ(weft::env{.executor = &constant}.executor, &p.executor());
  EXPECT_TRUE(weft::env{.executor = &p.executor()}.executor == &p);
  EXPECT_EQ(weft::scope_options{.executor = &p}.executor, &p.executor());
  EXPECT_EQ(weft::env{.executor = static_cast<pool*>(nullptr)}.executor, nullptr);
  EXPECT_FALSE(weft::env{}.executor == &p);
  EXPECT_EQ(&static_cast<weft::executor&>(p), &p.executor());
}

// One that runs a job of its own for each hop would count them.
TEST(pool, is_no_hop_away_from_its_executor) {
  const pool p{{.threads = 1, .priorities = 3}};
  auto stays = [&]() -> task<std::uint64_t> {
    const std::uint64_t before = p.stats().jobs;
    co_await start_on(p, where_it_runs());
    co_await weft::resume_on(p);
    co_await start_on(p.executor(), where_it_runs());
    co_await start_on(p.executor(1), where_it_runs());  // the middle one of three
    auto body = [](weft::scope&) { return where_it_runs(); };
    co_await weft::with_scope({.executor = &p}, body);
    co_return p.stats().jobs - before;
  };
  EXPECT_EQ(sync_wait(start_on(p.executor(), stays())), 0u);
  EXPECT_EQ(sync_wait(start_on(p, stays())), 0u);
}

// ---- order ------------------------------------------------------------------------------------------------------------

WEFT_TEST("pool: one that was woken is next, one that yields goes behind") {
  pool p{{.threads = 1}};
  std::vector<int> order;  // plain: one thread
  std::vector<work> jobs;
  std::latch over{1};
  work woken{[&] { order.push_back(3); }};
  work behind{[&] {
    order.push_back(4);
    over.count_down();
  }};
  work second{[&] { order.push_back(2); }};
  work first{[&] {
    order.push_back(1);
    p.executor().post_behind(second);
    p.executor().post_behind(behind);
    p.executor().post(woken);
  }};
  p.executor().post(first);
  over.wait();
  p.shutdown();  // the jobs lie in this block
  EXPECT_EQ(order, (std::vector{1, 3, 2, 4}));
  co_return;
}

TEST(pool, two_that_wake_each_other_do_not_starve_the_others) {
  pool p{{.threads = 1}};
  std::atomic<bool> ran{false};
  std::latch over{1};
  work *ping = nullptr, *pong = nullptr;
  work a{[&] { p.executor().post(*pong); }};
  work b{[&] {
    if (ran)
      over.count_down();
    else
      p.executor().post(*ping);
  }};
  ping = &a, pong = &b;
  work other{[&] { ran = true; }};
  work begin{[&] {
    p.executor().post_behind(other);
    p.executor().post(a);
  }};
  p.executor().post(begin);
  over.wait();
  p.shutdown();
}

TEST(pool, jobs_from_outside_are_not_starved_by_those_inside) {
  pool p{{.threads = 1}};
  std::atomic<bool> ran{false};
  std::latch begun{1}, over{1};
  work* self = nullptr;
  work again{[&] {
    if (ran) return over.count_down();
    if (!begun.try_wait()) begun.count_down();
    p.executor().post_behind(*self);
  }};
  self = &again;
  p.executor().post(again);
  begun.wait();
  work other{[&] { ran = true; }};
  p.executor().post(other);
  over.wait();
  p.shutdown();
}

// What a job posts is next on its own worker, which is busy for as long as it likes.
// The only worker takes all of them at once, and must not have each wait its turn beside what it always has to do.
TEST(pool, nor_do_many_of_them_wait_one_by_one_for_the_only_worker) {
  constexpr int posts = 1000;
  const pool p{{.threads = 1}};
  std::atomic<int> ran{0};
  std::vector<std::unique_ptr<work>> from_outside;
  std::latch begun{1}, posted{1};
  long yields = 0;
  const auto yields_till_all_ran = [&]() -> task<> {
    begun.count_down();
    posted.wait();
    for (; ran.load() != posts; ++yields) co_await weft::yield();
  };
  std::latch ended{1};
  weft::start(p.executor(), yields_till_all_ran(), [&](weft::result<void>) { ended.count_down(); });
  begun.wait();
  for (int i = 0; i != posts; ++i)
    p.executor().post(*from_outside.emplace_back(std::make_unique<work>([&] { ran.fetch_add(1); })));
  posted.count_down();
  ended.wait();
  EXPECT_LT(yields, 10'000) << "some dozens of them for some dozens of yields";
}

TEST(pool, what_a_busy_worker_is_to_do_next_is_taken_over) {
  pool p{{.threads = 2}};
  std::latch over{1};
  work next{[&] { over.count_down(); }};
  work blocks{[&] {
    p.executor().post(next);
    over.wait();  // for the other worker
  }};
  p.executor().post(blocks);
  over.wait();
  p.shutdown();
}

// Who has that job was perhaps the one that looked after the first worker, or searched when `next` was posted. Of three, on as
// few processors as there may be.
TEST(pool, also_if_another_has_a_long_job_meanwhile) {
  pool p{{.threads = 2, .spare_workers = 1}};
  for (int i = 0; i != test::rounds(40); ++i) {
    std::atomic<bool> has_run{false};
    std::latch begun{1}, over{3};
    const auto waits_for_next = [&] {
      const auto until = std::chrono::steady_clock::now() + 5s;
      while (!has_run && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(100us);
      EXPECT_TRUE(has_run) << i;
      over.count_down();
    };
    work next{[&] {
      has_run = true;
      over.count_down();
    }};
    work blocks{[&] {
      p.executor().post(next);
      begun.count_down();
      waits_for_next();
    }};
    work another{waits_for_next};
    p.executor().post(blocks);
    begun.wait();
    std::this_thread::sleep_for(i % 10 * 50us);
    p.executor().post(another);
    over.wait();
    if (HasFailure()) break;
  }
  p.shutdown();
}

// Posts so many from one worker, which runs them. In which order they ran.
std::vector<int> order_of(int count) {
  pool p{{.threads = 1}};
  std::vector<int> order;  // plain: one thread
  std::vector<work> jobs;
  std::latch over{1};
  jobs.reserve(count);
  for (int i = 0; i != count; ++i)
    jobs.emplace_back([&, i] {
      order.push_back(i);
      if (std::cmp_equal(order.size(), count)) over.count_down();
    });
  work posts_all{[&] {
    for (auto& one : jobs) p.executor().post_behind(one);
    EXPECT_EQ(p.stats().waiting, static_cast<std::size_t>(count));  // also those that were spilled
  }};
  p.executor().post(posts_all);
  over.wait();
  p.shutdown();
  EXPECT_EQ(p.stats().waiting, 0u);
  return order;
}

std::vector<int> numbers_up_to(int count) {
  std::vector<int> all(static_cast<std::size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

TEST(pool, a_line_grows_and_keeps_its_order) { EXPECT_EQ(order_of(10'000), numbers_up_to(10'000)); }

// More than it holds: the others go to the queue for all, and come from there in their turn.
TEST(pool, also_when_it_is_full) { EXPECT_EQ(order_of(150'000), numbers_up_to(150'000)); }

// ---- stress -------------------------------------------------------------------------------------------------------------

// A sleep of an hour must not show twice for an instant, nor not at all, when it ends.
TEST(pool_stats, a_sleep_counts_from_its_begin_to_its_end) {
  weft::detail::time_asleep slept;
  const auto after = [&](std::uint64_t now) { return slept.get(now).so_far; };
  EXPECT_EQ(after(500), 0u);
  slept.begins(1'000);
  EXPECT_TRUE(slept.get(1'000).sleeps);
  EXPECT_EQ(after(1'000), 0u);
  EXPECT_EQ(after(990), 0u) << "by who has looked at the clock before";
  EXPECT_EQ(after(1'700), 700u);
  slept.ends(1'800);
  EXPECT_FALSE(slept.get(1'800).sleeps);
  EXPECT_EQ(after(1'800), 800u);
  EXPECT_EQ(after(5'000), 800u);
  slept.begins(6'000);
  EXPECT_EQ(after(6'001), 801u);
  slept.ends(6'100);
  EXPECT_EQ(after(9'000), 900u);

  const weft::detail::time_asleep from_the_begin{300};
  EXPECT_TRUE(from_the_begin.get(400).sleeps);
  EXPECT_EQ(from_the_begin.get(400).so_far, 100u);
}

// Each job posts others, from inside and from outside, with more threads than cores.
TEST(pool, loses_nothing_that_many_post) {
  pool p{{.threads = 8}};
  const int each = test::rounds(20'000);
  constexpr int posters = 4;
  std::atomic<int> ran{0};
  struct twice : job {
    std::atomic<int>* ran;
    weft::executor* where;
    int left;
  };
  std::vector<std::vector<twice>> jobs(posters);
  for (auto& mine : jobs) {
    mine.resize(static_cast<std::size_t>(each));
    for (int i = 0; auto& one : mine) {
      one.ran = &ran;
      one.where = &p.executor();
      one.left = i++ % 4;
      one.run = [](job& self) noexcept {
        auto& one = static_cast<twice&>(self);
        one.ran->fetch_add(1);
        if (one.left == 0) return;
        if (--one.left % 2 == 0)
          one.where->post(one);
        else
          one.where->post_behind(one);
      };
    }
  }
  std::vector<std::jthread> threads;
  for (auto& mine : jobs)
    threads.emplace_back([&] {
      for (auto& one : mine) p.executor().post(one);
    });
  int expected = 0;
  for (int i = 0; i != each; ++i) expected += posters * (1 + i % 4);
  test::until([&] { return ran == expected; });
  p.shutdown();
}

WEFT_TEST("pool: a thousand tasks yield a hundred times each, with more threads than cores") {
  for (const unsigned threads : {1u, 2u, 8u}) {
    const pool p{{.threads = threads}};
    std::atomic<int> turns{0};
    const int each = test::rounds(100);
    const auto yields = [&]() -> task<> {
      for (int i = 0; i != each; ++i) {
        co_await weft::yield();
        turns.fetch_add(1, std::memory_order_relaxed);
      }
    };
    auto all = [&](weft::scope& s) -> task<> {
      for (int i = 0; i != 1000; ++i) s.fork(yields());
      co_return;
    };
    co_await weft::with_scope({.executor = &p.executor()}, all);
    EXPECT_EQ(turns, 1000 * each);
  }
}

// Links them, the first one first.
job* linked(std::vector<work>& jobs) {
  for (std::size_t i = 1; i < jobs.size(); ++i) jobs[i - 1].next = &jobs[i];
  return jobs.empty() ? nullptr : jobs.data();
}

// Between what was posted before and what comes after, from outside and by a worker, of a pool that ranks jobs, too.
TEST(pool, a_list_of_jobs_runs_in_its_order) {
  for (const bool ranks : {false, true})
    for (const bool inside : {false, true}) {
      pool p{{.threads = 1, .deadline_order = ranks}};
      std::vector<int> order;  // plain: one thread
      std::latch over{1};
      std::vector<work> list;
      for (int i = 1; i != 1001; ++i) list.emplace_back([&, i] { order.push_back(i); });
      work before{[&] { order.push_back(0); }}, after{[&] {
        order.push_back(1001);
        over.count_down();
      }};
      work posts_all{[&] {
        p.executor().post_behind(before);
        p.post_all(linked(list));
        p.executor().post_behind(after);
      }};
      if (inside)
        p.executor().post(posts_all);
      else
        posts_all.body();
      over.wait();
      p.shutdown();
      EXPECT_EQ(order.size(), 1002u);
      EXPECT_TRUE(std::ranges::is_sorted(order));
      EXPECT_EQ(p.stats().jobs, inside ? 1003u : 1002u);
      EXPECT_EQ(p.stats().from_outside, inside ? 1u : 1002u);
    }
}

TEST(pool, an_empty_list_is_nothing) {
  pool p{{.threads = 2}};
  p.post_all(nullptr);
  p.shutdown();
  EXPECT_EQ(p.stats().jobs, 0u);
}

// One is woken for all of them, and wakes the next one: two that wait for each other both run.
TEST(pool, a_list_wakes_as_many_as_it_needs) {
  pool p{{.threads = 2}};
  std::barrier both_there{2};
  std::atomic<int> ran{0};
  for (int round = 1; round != 1 + test::rounds(1000); ++round) {
    std::vector<work> list;
    for (int i = 0; i != 2; ++i)
      list.emplace_back([&] {
        both_there.arrive_and_wait();
        ran.fetch_add(1);
      });
    p.post_all(linked(list));
    test::until([&] { return ran == 2 * round; });
  }
  p.shutdown();
}

// From several threads at once, beside jobs that post lists themselves, with more threads than cores.
TEST(pool, loses_nothing_of_many_lists) {
  pool p{{.threads = 8}};
  const int lists = test::rounds(2000);
  constexpr int posters = 4, long_as = 16;
  std::atomic<int> ran{0};
  std::vector<std::vector<work>> all(static_cast<std::size_t>(2 * posters * lists));
  for (std::size_t i = 0; auto& list : all) {
    const bool leads = i++ % 2 == 0;  // posts the next one
    std::vector<work>* const next = &list + 1;
    for (int n = 0; n != long_as; ++n)
      list.emplace_back([&ran, &p, next, posts = leads && n == long_as / 2] {
        ran.fetch_add(1);
        if (posts) p.post_all(linked(*next));
      });
  }
  {
    std::vector<std::jthread> threads;
    for (int n = 0; n != posters; ++n)
      threads.emplace_back([&, n] {
        for (int i = 0; i != lists; ++i) p.post_all(linked(all[static_cast<std::size_t>(2 * (n * lists + i))]));
      });
  }
  test::until([&] { return ran == 2 * posters * lists * long_as; });
  p.shutdown();
  EXPECT_EQ(p.stats().jobs, static_cast<std::uint64_t>(ran));
  EXPECT_EQ(p.stats().waiting, 0u);
}

// One after the other: each post finds all asleep, or about to be.
TEST(pool, a_job_at_a_time_wakes_somebody_each_time) {
  pool p{{.threads = 3}};
  for (int i = 0; i != test::rounds(3000); ++i) {
    std::atomic<bool> ran{false};
    work one{[&] { ran = true; }};
    p.executor().post(one);
    test::until([&] { return ran.load(); });
  }
}

WEFT_TEST("pool: tasks hop between two pools") {
  const pool a{{.threads = 2}}, b{{.threads = 2}};
  const auto hops = [&]() -> task<int> {
    int wrong = 0;
    for (int i = 0; i != test::rounds(300); ++i) {
      co_await weft::resume_on(a.executor());
      wrong += !a.is_inside();
      co_await weft::resume_on(b.executor());
      wrong += !b.is_inside();
    }
    co_return wrong;
  };
  const auto [x, y, z] = co_await weft::when_all(hops(), hops(), hops());
  EXPECT_EQ(x + y + z, 0);
}

// ---- giving way -------------------------------------------------------------------------------------------------------

TEST(yield_before_park, is_for_who_is_woken_soon_after_each_of_some_sleeps) {
  weft::detail::yield_before_park one;
  for (int i = 0; i != 7; ++i) one.slept(1'000, false);
  EXPECT_FALSE(one.is_worth_it());
  one.slept(1'000, false);
  EXPECT_TRUE(one.is_worth_it());
  EXPECT_TRUE(one.came_back(1'000));
  EXPECT_TRUE(one.is_worth_it());
  one.slept(2'000'000, false);
  EXPECT_FALSE(one.is_worth_it());
}

TEST(yield_before_park, is_not_for_who_is_woken_by_sockets) {
  weft::detail::yield_before_park one;
  for (int i = 0; i != 8; ++i) one.slept(1'000, false);
  EXPECT_TRUE(one.is_worth_it());
  one.slept(1'000, true);
  EXPECT_FALSE(one.is_worth_it());
}

TEST(yield_before_park, that_cost_much_is_left_for_so_many_sleeps_and_then_for_twice_as_many) {
  weft::detail::yield_before_park one;
  for (int i = 0; i != 8; ++i) one.slept(1'000, false);
  for (const int pause : {100, 200, 400}) {
    EXPECT_TRUE(one.is_worth_it());
    EXPECT_FALSE(one.came_back(4'000'000));
    for (int i = 0; i != pause; ++i) {
      EXPECT_FALSE(one.is_worth_it());
      one.slept(1'000, false);
    }
  }
  EXPECT_TRUE(one.is_worth_it());
}

// ---- the pace of thieves ------------------------------------------------------------------------------------------------

TEST(steal_pace, one_that_took_less_than_it_cost_is_followed_by_a_pause_and_the_next_by_twice_as_long) {
  weft::detail::steal_pace one;
  std::uint64_t now = 1'000;
  EXPECT_FALSE(one.may_pause());
  for (const std::uint64_t pause : {100, 200, 400, 800, 800}) {
    EXPECT_FALSE(one.pauses(now));
    one.took(now, now + 100);
    EXPECT_TRUE(one.has_one());
    one.has_done(now + 199);
    EXPECT_FALSE(one.has_one());
    EXPECT_TRUE(one.may_pause());
    now += 199 + pause;
    EXPECT_TRUE(one.pauses(now - 1));
    EXPECT_TRUE(one.pauses());
  }
  EXPECT_FALSE(one.pauses(now));
  EXPECT_FALSE(one.pauses());
}

TEST(steal_pace, one_that_was_worth_it_or_that_none_are_left_ends_the_pauses) {
  weft::detail::steal_pace one;
  one.took(1'000, 1'100);
  one.has_done(1'150);
  EXPECT_TRUE(one.pauses(1'151));
  one.found_none();
  EXPECT_FALSE(one.pauses());
  EXPECT_FALSE(one.pauses(1'152));
  one.took(1'200, 1'300);
  one.has_done(1'400);
  EXPECT_FALSE(one.may_pause());
  EXPECT_FALSE(one.pauses(1'400));
}

TEST(steal_pace, one_that_lost_its_processor_meanwhile_pauses_no_longer_than_others) {
  weft::detail::steal_pace one;
  one.took(1'000, 10'000'000);
  one.has_done(10'000'001);
  EXPECT_TRUE(one.pauses(10'011'000));
  EXPECT_FALSE(one.pauses(10'013'000));
}

TEST(pool, sleeps_while_there_is_nothing_to_do) {
  pool p{{.threads = 4}};
  std::latch over{1};
  work one{[&] { over.count_down(); }};
  p.executor().post(one);
  over.wait();
  std::this_thread::sleep_for(50ms);  // until all sleep
  const auto in_200_ms = [] {
    rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    std::this_thread::sleep_for(200ms);
    getrusage(RUSAGE_SELF, &after);
    return after.ru_nvcsw - before.ru_nvcsw;
  };
  long switches = in_200_ms();
  for (int i = 0; switches > 12 && i != 150; ++i) switches = in_200_ms();  // one came late to its bed
  EXPECT_LE(switches, 12) << "nobody watches: all sleep";
  p.shutdown();
}

// ---- the end --------------------------------------------------------------------------------------------------------------

TEST(pool_end, jobs_that_are_there_run_and_what_they_post) {
  for (int round = 0; round != test::rounds(200); ++round) {
    std::atomic<int> ran{0};
    std::vector<work> last, first;
    last.reserve(20), first.reserve(20);
    {
      const pool p{{.threads = 3}};
      for (int i = 0; i != 20; ++i) {
        work& later = last.emplace_back([&] { ++ran; });
        p.executor().post(first.emplace_back([&] {
          ++ran;
          p.executor().post(later);
        }));
      }
    }
    EXPECT_EQ(ran, 40);
  }
}

TEST(pool_end, cancel_stops_tasks_at_their_next_wait) {
  pool p{{.threads = 1}};
  std::latch busy{1}, go_on{1};
  work blocks{[&] {
    busy.count_down();
    go_on.wait();
  }};
  p.executor().post(blocks);
  busy.wait();
  bool stopped = false;
  auto never_ends = []() -> task<> {
    for (;;) co_await weft::yield();
  };
  weft::start(p.executor(), never_ends(), [&](weft::result<void> r) { stopped = r.is_stopped(); });
  std::jthread helper{[&] {
    std::this_thread::sleep_for(10ms);
    go_on.count_down();
  }};
  p.shutdown(weft::pool_shutdown::cancel);
  EXPECT_TRUE(stopped);
}

// A pool that drains takes what comes from outside, until who brings it stops: then it ends, and all of it has run.
TEST(pool_end, beside_a_producer_that_stops) {
  for (int round = 0; round != test::rounds(20); ++round) {
    pool p{{.threads = 2}};
    std::atomic<bool> closes{false}, stopped{false};
    std::atomic<int> started{0}, ended{0};
    const auto until_it_stops = [&]() -> task<> {
      while (!stopped) co_await weft::yield();
    };
    const auto nothing = []() -> task<> { co_return; };
    weft::start(p.executor(), until_it_stops(), [](const weft::result<void>&) {});
    std::jthread producer{[&] {
      for (int left = 100; left != 0;) {
        weft::start(p.executor(), nothing(), [&](const weft::result<void>& one) { ended += one.has_value() ? 1 : 0; });
        ++started;
        if (closes) --left;  // so many more at least, beside the end
      }
      std::this_thread::sleep_for(1ms);  // it has long been asleep else
      stopped = true;
    }};
    while (started < 10) std::this_thread::yield();
    closes = true;
    p.shutdown();
    EXPECT_TRUE(stopped);
    EXPECT_GE(started, 100);
    EXPECT_EQ(ended, started);
  }
}

// What a job wakes is work of the pool, whenever it ends: so it is under chaos, too.
TEST(pool_end, those_that_wake_each_other_have_all_gone_on) {
  for (const auto how : {weft::pool_shutdown::drain, weft::pool_shutdown::cancel})
    for (int round = 0; round != test::rounds(50); ++round) {
      weft::mutex one_at_a_time;
      std::atomic<int> ended{0};
      pool p{{.threads = 2}};
      const auto take_turn = [&]() -> task<> {
        const auto turn = co_await one_at_a_time.lock();
        co_await weft::yield();
      };
      for (int i = 0; i != 8; ++i) weft::start(p.executor(), take_turn(), [&](const weft::result<void>&) { ++ended; });
      p.shutdown(how);
      EXPECT_EQ(ended, 8);
    }
}

TEST(pool_end, on_one_of_its_own_threads) {
  for (int round = 0; round != 50; ++round) {
    auto p = std::make_unique<pool>(weft::pool_options{.threads = 3});
    std::latch over{2};
    work after{[&] { over.count_down(); }};
    work ends_it{[&] {
      p->executor().post(after);
      p.reset();
      over.count_down();
    }};
    p->executor().post(ends_it);
    over.wait();
  }
}

// The waiter of the last job destroys the pool while whoever posted that job is still in post().
TEST(pool_end, with_posts_in_flight) {
  for (int round = 0; round != test::rounds(500); ++round) {
    auto p = std::make_unique<pool>(weft::pool_options{.threads = 2});
    std::latch ran{1};
    work one{[&] { ran.count_down(); }};
    std::jthread poster{[&] { p->executor().post(one); }};
    ran.wait();
    p.reset();
    poster.join();
  }
}

class pool_misuse : public testing::Test {
 protected:
  pool_misuse() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(pool_misuse, a_post_after_the_end) {
  const auto late = [] {
    pool p{{.threads = 1}};
    p.shutdown();
    work one{[] {}};
    p.executor().post(one);
  };
  EXPECT_DEATH(late(), "weft: a job was posted to a pool that has shut down");
}

TEST_F(pool_misuse, a_list_after_the_end) {
  const auto late = [] {
    pool p{{.threads = 1}};
    p.shutdown();
    std::vector<work> list;
    list.emplace_back([] {});
    list.emplace_back([] {});
    p.post_all(linked(list));
  };
  EXPECT_DEATH(late(), "weft: a job was posted to a pool that has shut down");
}

TEST_F(pool_misuse, in_a_child_that_was_forked) {
  const auto fork_and_use = [] {
    const pool p{{.threads = 1}};
    const pid_t child = ::fork();
    if (child == 0) {
      work one{[] {}};
      p.executor().post(one);
      std::_Exit(0);
    }
    int status;
    ::waitpid(child, &status, 0);
    if (WIFSIGNALED(status)) std::abort();
  };
  EXPECT_DEATH(fork_and_use(), "weft: a pool was used in a process that was forked");
}

// What waits in the line of the worker that forks is the parent's: the child, whose job has ended, does not run it again.
TEST_F(pool_misuse, in_a_child_that_a_job_has_forked) {
  const auto fork_in_a_job = [] {
    const pool p{{.threads = 1}};
    const pid_t parent = ::getpid();
    pid_t child = -1;
    std::latch over{1};
    work later{[&] {
      if (::getpid() != parent) std::_Exit(0);
      over.count_down();
    }};
    work forks{[&] {
      p.executor().post(later);
      child = ::fork();
    }};
    p.executor().post(forks);
    over.wait();
    int status;
    ::waitpid(child, &status, 0);
    if (WIFSIGNALED(status)) std::abort();
  };
  EXPECT_DEATH(fork_in_a_job(), "weft: a pool was used in a process that was forked");
}

#if !defined(WEFT_TEST_TSAN)  // which stands no threads in a forked child
// As threads are that begin, end, or want memory for frames.
TEST(pool_end, a_child_makes_one_that_is_forked_while_other_threads_are_at_the_locks_of_the_library) {
  std::atomic<bool> enough{false};
  std::jthread begin_and_end{[&] {
    while (!enough) static_cast<void>(weft::detail::newest_worker());
  }};
  std::jthread want_memory{[&] {
    while (!enough) static_cast<void>(weft::detail::age_frame_memory());
  }};
  for (int i = 0; i != test::rounds(50); ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(100);  // else it would wait for ever
      const pool mine{{.threads = 2}};
      auto answer = []() -> task<int> { co_return 42; };
      std::_Exit(sync_wait(start_on(mine.executor(), answer())) == 42 ? 0 : 1);
    }
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  enough = true;
}
#endif

TEST(pool_end, a_forked_child_may_leave_it_and_make_one) {
  auto p = std::make_unique<pool>(weft::pool_options{.threads = 2});
  const pid_t child = ::fork();
  if (child == 0) {
    p.reset();                // does nothing: the threads are the parent's
#if !defined(WEFT_TEST_TSAN)  // which stands no threads in a forked child
    const pool mine{{.threads = 2}};
    auto answer = []() -> task<int> { co_return 42; };
    std::_Exit(sync_wait(start_on(mine.executor(), answer())) == 42 ? 0 : 1);
#endif
    std::_Exit(0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

// ---- how many threads --------------------------------------------------------------------------------------------------------

class control_groups : public testing::Test {
 protected:
  control_groups() { std::filesystem::create_directories(root_); }
  ~control_groups() override { std::filesystem::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream{root_ / path} << text << '\n';
  }
  unsigned processors() {
    return weft::detail::processors_of((root_ / "membership").string(), (root_ / "mounted").string());
  }

  const unsigned all_ = weft::detail::processors_of("/nonexistent", "/nonexistent");

 private:
  const std::filesystem::path root_ =
      std::filesystem::temp_directory_path() / ("weft-control-groups-" + std::to_string(::getpid()));
};

TEST_F(control_groups, a_quota_is_rounded_up) {
  write("membership", "0::/a/b");
  write("mounted/a/b/cpu.max", "50000 100000");
  EXPECT_EQ(processors(), 1u);
  write("mounted/a/b/cpu.max", "110000 100000");
  EXPECT_EQ(processors(), std::min(all_, 2u));
}

TEST_F(control_groups, that_of_a_group_above_counts) {
  write("membership", "0::/a/b/c");
  write("mounted/a/b/c/cpu.max", "max 100000");
  EXPECT_EQ(processors(), all_);
  write("mounted/a/cpu.max", "100000 100000");
  EXPECT_EQ(processors(), 1u);
}

TEST_F(control_groups, that_of_the_first_version_counts) {
  write("membership", "9:cpuset:/x\n7:cpu,cpuacct:/a\n0::/");
  write("mounted/cpu,cpuacct/a/cpu.cfs_quota_us", "-1");
  write("mounted/cpu,cpuacct/a/cpu.cfs_period_us", "100000");
  EXPECT_EQ(processors(), all_);
  write("mounted/cpu,cpuacct/a/cpu.cfs_quota_us", "90000");
  EXPECT_EQ(processors(), 1u);
}

TEST_F(control_groups, what_makes_no_sense_limits_nothing) {
  for (const char* text : {"", "nonsense", "0 0", "-5 100000", "max"}) {
    write("membership", "0::/a\nno colon\n1:");
    write("mounted/a/cpu.max", text);
    EXPECT_EQ(processors(), all_) << text;
  }
}

}  // namespace

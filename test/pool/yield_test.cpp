// What yield() says: what was posted to this executor before, from wherever, runs before who yields goes on. On a pool of
// several threads within the bounds that its docstring states.
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <deque>
#include <latch>
#include <vector>
#include <weft/combine.hpp>
#include <weft/fiber.hpp>
#include <weft/pool.hpp>
#include <weft/scope.hpp>

#include "support/weft_test.hpp"
#include "support/work.hpp"

namespace {

using test::work;
using weft::executor;
using weft::pool;
using weft::scope;
using weft::start_on;
using weft::strand;
using weft::sync_wait;
using weft::task;
using weft::worker_group;

enum class who { task, fiber };
constexpr who both[]{who::task, who::fiber};

// Runs `before`, then yields, then runs `after`, on `where`, by a task or by a fiber.
template <class Before, class After>
void yields_between(executor& where, who one, Before before, After after) {
  const auto by_task = [&]() -> task<> {
    before();
    co_await weft::yield();
    after();
  };
  const auto by_fiber = [&] {
    before();
    weft::this_fiber::yield();
    after();
  };
  const auto body = [&](scope& s) -> task<> {
    if (one == who::task)
      s.fork(by_task);
    else
      s.go(by_fiber);
    co_return;
  };
  sync_wait(weft::with_scope({.executor = &where}, body));
}

// Posts so many jobs to `where` from another thread while something runs there, which then yields. How many have run when it
// goes on. `gets` posts to it; there are `beside` others that yield all the time.
template <class Post>
int run_before_it_goes_on(executor& where, who one, int count, int beside, Post post) {
  std::atomic<bool> begun{false}, posted{false}, over{false};
  std::atomic<int> ran{0};
  int seen = -1;
  std::deque<work> jobs;
  for (int i = 0; i != count; ++i) jobs.emplace_back([&] { ran.fetch_add(1); });
  std::jthread outside{[&] {
    while (!begun) std::this_thread::yield();
    post(jobs);
    posted = true;
  }};
  std::latch all_ended{beside};
  const auto yields_on = [&]() -> task<> {
    while (!over) co_await weft::yield();
  };
  for (int i = 0; i != beside; ++i)
    weft::start(where, yields_on(), [&](weft::result<void>) { all_ended.count_down(); });
  const auto waits_for_the_posts = [&] {
    begun = true;
    while (!posted) std::this_thread::yield();
  };
  yields_between(where, one, waits_for_the_posts, [&] { seen = ran, over = true; });
  all_ended.wait();
  while (ran != count) std::this_thread::yield();
  return seen;
}

int run_before_it_goes_on(executor& where, who one, int count, int beside = 0) {
  return run_before_it_goes_on(where, one, count, beside, [&](std::deque<work>& jobs) {
    for (work& job : jobs) where.post(job);
  });
}

// ---- one thread: exactly ------------------------------------------------------------------------------------------------

TEST(yield, lets_what_came_from_outside_run_first_on_a_pool_of_one) {
  for (const who one : both)
    for (const int beside : {0, 1, 100})
      for (const int count : {1, 63, 64, 65, 1000}) {
        const pool p{{.threads = 1}};
        EXPECT_EQ(run_before_it_goes_on(p.executor(), one, count, beside), count);
      }
}

TEST(yield, also_where_more_wait_than_its_line_holds) {
  constexpr int many = 150'000;
  for (const who one : both)
    for (const int beside : {0, 2}) {
      const pool p{{.threads = 1}};
      const int seen = run_before_it_goes_on(p.executor(), one, many, beside, [&](std::deque<work>& jobs) {
        for (std::size_t i = 1; i != jobs.size(); ++i) jobs[i - 1].next = &jobs[i];
        p.post_all(&jobs.front());
      });
      EXPECT_EQ(seen, many);
    }
}

TEST(yield, and_where_they_were_posted_on_its_own_thread) {
  constexpr int many = 70'000;  // more than a line holds
  for (const who one : both) {
    int ran = 0, seen = -1;  // plain: one thread
    std::deque<work> jobs;
    const pool p{{.threads = 1}};
    for (int i = 0; i != many; ++i) jobs.emplace_back([&] { ++ran; });
    const auto posts = [&] {
      for (work& job : jobs) p.executor().post(job);
    };
    yields_between(p.executor(), one, posts, [&] { seen = ran; });
    EXPECT_EQ(seen, many);
  }
}

// What was woken last has its turn before the line, but so many times in a row only.
TEST(yield, lets_what_was_posted_last_run_first_whosever_turn_it_is) {
  for (const who one : both)
    for (int length = 0; length != 40; ++length) {
      bool ran = false, seen = false;  // plain: one thread
      std::latch ended{1};
      work last{[&] { ran = true; }};
      std::deque<work> chain;
      const pool p{{.threads = 1}};
      const auto posts_and_yields = [&] { p.executor().post(last); };
      const auto looks = [&] { seen = ran; };
      const auto by_task = [&]() -> task<> {
        posts_and_yields();
        co_await weft::yield();
        looks();
      };
      const auto by_fiber = [&](scope& s) -> task<> {
        const auto fiber = [&] {
          posts_and_yields();
          weft::this_fiber::yield();
          looks();
        };
        s.go(fiber);
        co_return;
      };
      const auto over = [&](weft::result<void>) { ended.count_down(); };
      for (int i = 0; i != length; ++i)
        chain.emplace_back([&, i] {
          if (i + 1 != length) return p.executor().post(chain[static_cast<std::size_t>(i) + 1]);
          if (one == who::task)
            weft::start(p.executor(), by_task(), over);
          else
            weft::start(p.executor(), weft::with_scope(by_fiber), over);
        });
      if (length == 0) {
        weft::start(p.executor(), by_task(), over);
      } else {
        p.executor().post(chain.front());
      }
      ended.wait();
      EXPECT_TRUE(seen) << length;
    }
}

TEST(yield, keeps_the_order_of_one_worker) {
  for (const who one : both)
    for (const unsigned workers : {1u, 3u})
      for (const int count : {1, 100}) {
        const worker_group group{workers};
        EXPECT_EQ(run_before_it_goes_on(group.worker(0), one, count, 3), count);
        const pool p{{.threads = workers}};
        EXPECT_EQ(run_before_it_goes_on(p.worker(0), one, count, 3), count);
      }
}

TEST(yield, keeps_the_order_of_a_thread_that_helps) {
  for (const int count : {1, 100}) {
    std::atomic<bool> begun{false}, posted{false};
    std::atomic<int> ran{0};
    std::deque<work> jobs;
    for (int i = 0; i != count; ++i) jobs.emplace_back([&] { ++ran; });
    const pool p{{.threads = 1, .use_caller = true}};
    const std::jthread outside{[&] {
      while (!begun) std::this_thread::yield();
      for (work& job : jobs) p.executor().post(job);
      posted = true;
    }};
    const auto waits_then_yields = [&]() -> task<int> {
      begun = true;
      while (!posted) std::this_thread::yield();
      co_await weft::yield();
      co_return ran.load();
    };
    EXPECT_EQ(p.run(waits_then_yields()), count);
  }
}

TEST(yield, keeps_the_order_of_a_strand) {
  for (const who one : both)
    for (const unsigned threads : {1u, 3u}) {
      const pool p{{.threads = threads}};
      strand below{p.executor()};
      EXPECT_EQ(run_before_it_goes_on(below, one, 100, 3), 100);
      strand above{below.executor()};
      EXPECT_EQ(run_before_it_goes_on(above, one, 100, 3), 100);
    }
}

TEST(yield, goes_behind_what_is_as_urgent_and_less_than_what_is_more) {
  for (const who one : both)
    for (const bool deadlines : {false, true}) {
      int seen = -1;
      std::atomic<int> urgent{0}, later{0};
      work first{[&] { ++urgent; }}, last{[&] { ++later; }};
      const weft::pool_options options{.threads = 1, .priorities = 3, .deadline_order = deadlines};
      const pool busy{options};
      for (const unsigned priority : {0u, 1u, 2u})
        EXPECT_EQ(run_before_it_goes_on(busy.executor(priority), one, 100, 3), 100) << priority;
      const pool p{options};  // a new one, since every 61st job is no matter of priorities, so that none starves
      const auto posts_both = [&] {
        p.executor(2).post(last);
        p.executor(0).post(first);
      };
      yields_between(p.executor(1), one, posts_both, [&] { seen = 10 * urgent + later; });
      EXPECT_EQ(seen, 10) << "what is less urgent was posted to another executor";
    }
}

TEST(yield, keeps_the_order_where_jobs_are_pumped_by_hand) {
  weft::manual_executor loop;
  std::vector<int> order;
  const auto yields = [&]() -> task<> {
    order.push_back(1);
    co_await weft::yield();
    order.push_back(3);
  };
  weft::start(loop, yields(), [](weft::result<void>) {});
  work other{[&] { order.push_back(2); }};
  loop.post(other);
  loop.run_all();
  EXPECT_EQ(order, (std::vector{1, 2, 3}));
}

TEST(yield, keeps_the_order_of_an_inline_run) {
  std::vector<int> order;
  const auto other = [&]() -> task<> {
    order.push_back(2);
    co_return;
  };
  weft::inline_executor at_once;
  const auto yields = [&]() -> task<> {
    weft::start(at_once, other(), [](weft::result<void>) {});  // right after this job
    order.push_back(1);
    co_await weft::yield();
    order.push_back(3);
  };
  weft::start(at_once, yields(), [](weft::result<void>) {});
  EXPECT_EQ(order, (std::vector{1, 2, 3}));
}

TEST(yield, keeps_the_order_below_a_thread_that_waits) {
  for (const who one : both) {
    int seen = -1;
    const auto body = [&](scope& s) -> task<> {
      executor& here = *weft::current_env().executor;
      std::atomic<int> ran{0};
      std::deque<work> jobs;
      for (int i = 0; i != 100; ++i) jobs.emplace_back([&] { ++ran; });
      const auto posts = [&] {
        std::jthread{[&] {
          for (work& job : jobs) here.post(job);
        }}.join();
      };
      const auto by_fiber = [&] {
        posts();
        weft::this_fiber::yield();
        seen = ran;
      };
      if (one == who::fiber) {
        co_await s.go(by_fiber);
      } else {
        posts();
        co_await weft::yield();
        seen = ran;
      }
    };
    sync_wait(weft::with_scope(body));
    EXPECT_EQ(seen, 100);
  }
}

// ---- several threads ------------------------------------------------------------------------------------------------------

// All but one are at jobs that do not end before the last of `count` has run, which the last of them to begin posts, or has
// posted. How often something yields on the one that is left, from when all are posted until all have run.
template <class PostAll>
int yields_until_all_ran(unsigned threads, who one, int count, PostAll post_all) {
  std::atomic<bool> begun{false}, posted{false}, given_up{false};
  std::atomic<int> ran{0};
  std::atomic<unsigned> held{0}, let_go{0};
  std::deque<work> jobs, holders;
  const pool p{{.threads = threads}};
  for (int i = 0; i != count; ++i) jobs.emplace_back([&] { ran.fetch_add(1); });
  const auto holds = [&](unsigned which) {
    ++held;
    if (which + 2 == threads) {
      while (!begun) std::this_thread::yield();
      post_all(p, jobs, posted);
    }
    while (ran != count && !given_up) std::this_thread::yield();
    ++let_go;
  };
  for (unsigned i = 0; i + 1 != threads; ++i) {
    holders.emplace_back([&, i] { holds(i); });
    p.executor().post(holders.back());
    while (held != i + 1) std::this_thread::yield();
  }
  int yields = 0;
  const auto goes_on = [&] {
    begun = true;
    const bool counts = posted && ran != count;
    yields += counts;
    given_up = yields == 1'000'000;
    return !posted || (counts && !given_up);
  };
  const auto by_task = [&]() -> task<> {
    while (goes_on()) co_await weft::yield();
  };
  const auto by_fiber = [&] {
    while (goes_on()) weft::this_fiber::yield();
  };
  const auto body = [&](scope& s) -> task<> {
    if (one == who::task)
      s.fork(by_task);
    else
      s.go(by_fiber);
    co_return;
  };
  sync_wait(weft::with_scope({.executor = &p.executor()}, body));
  while (let_go + 1 != threads) std::this_thread::yield();
  return yields;
}

TEST(yield, is_passed_by_64_jobs_from_outside_at_a_time_on_several_threads) {
  for (const who one : both)
    for (const unsigned threads : {2u, 4u})
      for (const int count : {1, 64, 65, 1000}) {
        std::jthread outside;
        const auto post_from_outside = [&](const pool& p, std::deque<work>& jobs, std::atomic<bool>& posted) {
          outside = std::jthread{[&] {
            for (work& job : jobs) p.executor().post(job);
            posted = true;
          }};
        };
        const int yields = yields_until_all_ran(threads, one, count, post_from_outside);
        EXPECT_LE(yields, (count + 63) / 64) << count << " by " << threads;
      }
}

TEST(yield, lets_run_what_waits_behind_a_job_of_another_thread_that_does_not_end) {
  for (const who one : both)
    for (const unsigned threads : {2u, 4u}) {
      constexpr int count = 50;  // all but one in the line, the last one in its slot
      const auto post_there = [&](const pool& p, std::deque<work>& jobs, std::atomic<bool>& posted) {
        for (work& job : jobs) p.executor().post(job);
        posted = true;
      };
      const int yields = yields_until_all_ran(threads, one, count, post_there);
      EXPECT_LE(yields, 1500 * static_cast<int>(threads - 1)) << threads;
    }
}

}  // namespace

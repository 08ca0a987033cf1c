#include <weft/executor.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <thread>
#include <utility>
#include <vector>
#include <weft/env.hpp>

#include "support/weft_test.hpp"
#include "support/work.hpp"

namespace {

using test::work;
using weft::inline_executor;
using weft::job;
using weft::manual_executor;
using weft::new_thread_executor;

// ---- inline_executor ------------------------------------------------------------------------------------------------

TEST(inline_executor, runs_a_job_before_post_returns) {
  inline_executor here;
  bool ran = false;
  work one{[&] { ran = true; }};
  here.post(one);
  EXPECT_TRUE(ran);
}

TEST(inline_executor, runs_what_a_job_posts_right_after_it_in_order) {
  inline_executor here, another;
  std::vector<int> order;
  work second{[&] { order.push_back(2); }}, third{[&] { order.push_back(3); }};
  work first{[&] {
    here.post(second);
    another.post(third);  // all inline executors are one
    order.push_back(1);
  }};
  here.post(first);
  EXPECT_EQ(order, (std::vector{1, 2, 3}));
}

TEST(inline_executor, a_job_that_posts_itself_a_million_times_needs_no_stack) {
  test::on_small_stack([] {
    inline_executor here;
    int left = 1'000'000;
    work* self = nullptr;
    work again{[&] {
      if (--left > 0) here.post(*self);
    }};
    self = &again;
    here.post(again);
    EXPECT_EQ(left, 0);
  });
}

// ---- manual_executor ------------------------------------------------------------------------------------------------

TEST(manual_executor, runs_nothing_until_asked_then_in_order_of_posting) {
  manual_executor loop;
  EXPECT_TRUE(loop.empty());
  EXPECT_FALSE(loop.run_one());
  std::vector<int> order;
  work a{[&] { order.push_back(1); }}, b{[&] { order.push_back(2); }}, c{[&] { order.push_back(3); }};
  loop.post(a);
  loop.post(b);
  EXPECT_FALSE(loop.empty());
  EXPECT_TRUE(order.empty());
  EXPECT_TRUE(loop.run_one());
  loop.post(c);
  EXPECT_EQ(loop.run_all(), 2u);
  EXPECT_EQ(order, (std::vector{1, 2, 3}));
  EXPECT_TRUE(loop.empty());
}

TEST(manual_executor, run_all_takes_what_its_jobs_post) {
  manual_executor loop;
  int left = 10;
  work* self = nullptr;
  work again{[&] {
    if (--left > 0) loop.post(*self);
  }};
  self = &again;
  loop.post(again);
  EXPECT_EQ(loop.run_all(), 10u);
}

TEST(manual_executor, loses_nothing_that_several_threads_post) {
  constexpr int posters = 4;
  const int each = test::rounds(20'000);
  manual_executor loop;
  std::vector<int> ran(posters, 0);  // plain: only the pump writes
  std::vector<std::vector<work>> jobs(posters);
  for (int p = 0; p < posters; ++p) {
    jobs[p].reserve(each);
    for (int i = 0; i < each; ++i)
      jobs[p].emplace_back([&ran, p, i] {
        EXPECT_EQ(ran[p], i) << "one poster's jobs stay in order";
        ++ran[p];
      });
  }
  std::vector<std::jthread> threads;
  for (auto& mine : jobs)
    threads.emplace_back([&] {
      for (auto& one : mine) loop.post(one);
    });
  std::size_t count = 0;
  test::until([&] { return (count += loop.run_all()) == static_cast<std::size_t>(posters * each); });
  EXPECT_EQ(ran, std::vector<int>(posters, each));
}

// ---- new_thread_executor --------------------------------------------------------------------------------------------

TEST(new_thread_executor, runs_each_job_on_another_thread_and_waits_for_all) {
  std::atomic<int> elsewhere = 0;
  const auto here = std::this_thread::get_id();
  std::vector<work> jobs;
  for (int i = 0; i < 50; ++i) jobs.emplace_back([&] { elsewhere += std::this_thread::get_id() != here; });
  {
    new_thread_executor threads;
    for (auto& one : jobs) threads.post(one);
  }
  EXPECT_EQ(elsewhere, 50);
}

TEST(new_thread_executor, a_job_may_post_another) {
  int ran = 0;  // plain: thread after thread, and the destructor at the end
  {
    new_thread_executor threads;
    work last{[&] { ++ran; }};
    work first{[&] {
      ++ran;
      threads.post(last);
    }};
    threads.post(first);
    // `last` must outlive its run: wait before it goes out of scope.
    threads.~new_thread_executor();
    new (&threads) new_thread_executor;
  }
  EXPECT_EQ(ran, 2);
}

// What a thread does after its job, as the destructors of its thread-locals do, is over before the destructor returns.
TEST(new_thread_executor, leaves_no_thread_behind) {
  struct at_thread_end {
    std::atomic<int>* count = nullptr;
    ~at_thread_end() {
      std::this_thread::sleep_for(std::chrono::milliseconds{2});
      ++*count;
    }
  };
  std::atomic<int> ended = 0;
  std::vector<work> jobs;
  for (int i = 0; i < 20; ++i)
    jobs.emplace_back([&] {
      thread_local at_thread_end last;
      last.count = &ended;
    });
  {
    new_thread_executor threads;
    for (auto& one : jobs) threads.post(one);
  }
  EXPECT_EQ(ended, 20);
}

TEST(new_thread_executor_misuse, destroyed_by_a_job_of_its_own) {
  GTEST_FLAG_SET(death_test_style, std::getenv("WEFT_TEST_EMULATED") != nullptr ? "fast" : "threadsafe");
  const auto destroys_itself = [] {
    auto* const threads = new new_thread_executor;
    work last{[&] { delete threads; }};
    threads->post(last);
    test::until([] { return false; });
  };
  EXPECT_DEATH(destroys_itself(), "weft: a new_thread_executor was destroyed by a job of its own");
}

TEST(env, outside_of_any_task_is_empty) {
  EXPECT_EQ(weft::current_env().executor, nullptr);
  EXPECT_FALSE(weft::current_env().stop.stop_possible());
}

}  // namespace

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <latch>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>
#include <weft/combine.hpp>
#include <weft/pool.hpp>
#include <weft/scope.hpp>
#include <weft/sync.hpp>
#include <weft/with.hpp>

#include "support/weft_test.hpp"
#include "support/work.hpp"

namespace {

using test::work;
using weft::job;
using weft::pool;
using weft::start_on;
using weft::strand;
using weft::sync_wait;
using weft::task;

// ---- order ------------------------------------------------------------------------------------------------------------

TEST(strand, runs_its_jobs_in_order_of_posting) {
  weft::manual_executor loop;
  strand one{loop};
  std::vector<int> order;
  work c{[&] { order.push_back(3); }}, b{[&] { order.push_back(2); }};
  work a{[&] {
    one.post(c);  // behind b, which waits already
    order.push_back(1);
  }};
  one.post(a);
  one.post(b);
  EXPECT_TRUE(order.empty()) << "it has no thread of its own";
  EXPECT_EQ(loop.run_all(), 1u) << "they are one turn";
  EXPECT_EQ(order, (std::vector{1, 2, 3}));
  EXPECT_FALSE(one.runs_in_parallel());
}

TEST(strand, over_an_inline_executor_runs_a_job_at_once_and_never_within_another) {
  weft::inline_executor here;
  strand one{here};
  std::vector<int> order;
  work second{[&] { order.push_back(2); }};
  work first{[&] {
    one.post(second);
    order.push_back(1);
  }};
  one.post(first);
  EXPECT_EQ(order, (std::vector{1, 2}));
}

TEST(strand, lets_others_of_the_executor_below_have_their_turn) {
  weft::manual_executor loop;
  strand one{loop};
  int left = 1000;
  work* self = nullptr;
  work again{[&] {
    if (--left > 0) one.post(*self);
  }};
  self = &again;
  int seen = 0;
  work other{[&] { seen = left; }};
  one.post(again);
  loop.post(other);
  loop.run_all();
  EXPECT_EQ(left, 0);
  EXPECT_GT(seen, 900) << "it waited for some dozens of jobs";
}

TEST(strand, a_job_that_posts_itself_a_million_times_needs_no_stack) {
  test::on_small_stack([] {
    weft::inline_executor here;
    strand one{here};
    int left = 1'000'000;
    work* self = nullptr;
    work again{[&] {
      if (--left > 0) one.post(*self);
    }};
    self = &again;
    one.post(again);
    EXPECT_EQ(left, 0);
  });
}

TEST(strand, may_stand_on_another_one) {
  weft::manual_executor loop;
  strand below{loop}, a{below.executor()}, b{below.executor()};
  std::vector<int> order;
  work first{[&] { order.push_back(1); }}, second{[&] { order.push_back(2); }}, third{[&] { order.push_back(3); }};
  a.post(first);
  b.post(second);
  a.post(third);
  loop.run_all();
  EXPECT_EQ(order, (std::vector{1, 3, 2})) << "a turn takes all that is there";
}

// ---- threads ------------------------------------------------------------------------------------------------------------

// Posters from outside and jobs from inside, with more threads than cores; what the jobs share is plain.
TEST(strand, runs_one_at_a_time_and_loses_nothing_that_many_post) {
  constexpr std::size_t posters = 4;
  const int each = test::rounds(20'000);
  const pool workers{{.threads = 4}};
  strand one{workers.executor()};
  struct numbered : job {
    strand* where;
    std::array<int, posters>* ran;
    std::size_t poster;
    int number, again;
    bool* wrong;
  };
  std::array<int, posters> ran{};  // plain: only jobs of the strand touch it
  bool wrong = false;
  std::vector<std::vector<numbered>> jobs(posters);
  for (std::size_t p = 0; p != posters; ++p) {
    jobs[p].resize(static_cast<std::size_t>(each));
    for (int i = 0; auto& mine : jobs[p]) {
      mine.where = &one, mine.ran = &ran, mine.poster = p, mine.number = i, mine.again = i % 3, mine.wrong = &wrong;
      ++i;
      mine.run = [](job& self) noexcept {
        auto& mine = static_cast<numbered&>(self);
        int& count = (*mine.ran)[mine.poster];
        if (mine.number >= 0) {  // its first run: in order among its poster's
          if (mine.number != 0 && (&mine)[-1].number >= 0) *mine.wrong = true;
          mine.number = -1;
        }
        ++count;
        if (mine.again-- > 0) mine.where->post(mine);
      };
    }
  }
  std::vector<std::jthread> threads;
  for (auto& mine : jobs)
    threads.emplace_back([&] {
      for (auto& job : mine) one.post(job);
    });
  threads.clear();
  int expected = 0;
  for (int i = 0; i != each; ++i) expected += static_cast<int>(posters) * (1 + i % 3);
  const auto total = [&]() -> task<int> {
    int sum = 0;
    for (const int count : ran) sum += count;
    co_return sum;
  };
  test::until([&] { return sync_wait(start_on(one, total())) == expected; });
  EXPECT_FALSE(wrong);
}

WEFT_TEST("strand: tasks on it share plain variables, and wait without holding it up") {
  const pool workers{{.threads = 4}};
  strand one{workers.executor()};
  int inside = 0, most = 0, turns = 0;  // plain
  const int each = test::rounds(200);
  const auto visit = [&]() -> task<> {
    for (int i = 0; i != each; ++i) {
      most = std::max(most, ++inside);
      ++turns;
      --inside;
      co_await weft::yield();
    }
  };
  auto all = [&](weft::scope& s) -> task<> {
    for (int i = 0; i != 50; ++i) s.fork(visit());
    co_return;
  };
  co_await weft::with_scope({.executor = &one}, all);
  EXPECT_EQ(most, 1);
  EXPECT_EQ(turns, 50 * each);
}

WEFT_TEST("strand: a task hops between two of one pool") {
  const pool workers{{.threads = 3}};
  strand a{workers.executor()}, b{workers.executor()};
  int in_a = 0, in_b = 0;  // plain
  const auto hops = [&]() -> task<int> {
    int wrong = 0;
    for (int i = 0; i != test::rounds(300); ++i) {
      co_await weft::resume_on(a);
      ++in_a;
      wrong += !a.is_inside() || b.is_inside();
      co_await weft::resume_on(b.executor());
      ++in_b;
      wrong += a.is_inside() || !b.is_inside();
    }
    co_return wrong;
  };
  const auto [x, y, z] = co_await weft::when_all(start_on(workers.executor(), hops()), start_on(a, hops()), hops());
  EXPECT_EQ(x + y + z, 0);
  EXPECT_FALSE(a.is_inside());
}

WEFT_TEST("strand: memory for one thread may be used below it, on a pool") {
  const pool workers{{.threads = 3}};
  strand one{workers.executor()};
  test::counting_resource memory;
  const auto leaf = [](int n) -> task<int> {
    co_await weft::yield();
    co_return n;
  };
  const auto below = [&]() -> task<int> {
    int sum = 0;
    for (int i = 0; i != 100; ++i) {
      std::vector<task<int>> both;
      both.push_back(leaf(i));
      both.push_back(leaf(1));
      const std::vector<int> values = co_await weft::when_all(std::move(both));  // one after the other
      sum += values[0] + values[1];
    }
    co_return sum;
  };
  const auto with = [&]() -> task<int> { co_return co_await weft::with_memory(&memory, below); };
  EXPECT_EQ(co_await start_on(one, with()), 5050);
  EXPECT_GE(memory.allocations, 200u);
  EXPECT_EQ(memory.live, 0u);
}

WEFT_TEST("strand: a task that is told to stop while it waits for its turn ends there, and the next one runs") {
  const pool workers{{.threads = 2}};
  strand one{workers.executor()};
  weft::event begun, over;
  std::latch go_on{1};
  const auto holds = [&]() -> task<> {
    begun.set();
    go_on.wait();  // a worker, for the test
    co_return;
  };
  bool arrived = false;
  const auto visit = [&]() -> task<> {
    arrived = true;
    co_await weft::yield();
    ADD_FAILURE() << "it was told to stop before";
  };
  auto body = [&](weft::scope& s) -> task<> {
    s.fork_on(one, holds());
    co_await begun.wait();
    auto second = s.fork_on(one, visit());
    second.request_stop();
    go_on.count_down();
    const auto ended = co_await weft::as_result(std::move(second));
    EXPECT_TRUE(ended.is_stopped());
  };
  co_await weft::with_scope(body);
  EXPECT_TRUE(arrived) << "a job in an executor's queue can't be taken out";
  const auto inside = [&]() -> task<bool> { co_return one.is_inside(); };
  EXPECT_TRUE(co_await start_on(one, inside()));
}

// ---- the end --------------------------------------------------------------------------------------------------------------

TEST(strand_end, by_a_job_of_its_own) {
  const pool workers{{.threads = 2}};
  for (int round = 0; round != test::rounds(500); ++round) {
    auto one = std::make_unique<strand>(workers.executor());
    std::latch over{1};
    work ends_it{[&] {
      one.reset();
      over.count_down();
    }};
    one->post(ends_it);
    over.wait();
  }
}

// Who waited for the last job destroys the strand while its turn may not have ended.
TEST(strand_end, while_its_last_job_returns) {
  const pool workers{{.threads = 2}};
  for (int round = 0; round != test::rounds(2000); ++round) {
    std::optional<strand> one{workers.executor()};
    std::latch over{3};
    std::array<work, 3> jobs{work{[&] { over.count_down(); }}, work{[&] { over.count_down(); }},
                             work{[&] { over.count_down(); }}};
    for (auto& mine : jobs) one->post(mine);
    over.wait();
    one.reset();
  }
}

// Also where others are between, and while it ends: all of them are its tasks.
WEFT_TEST("strand_end: a pool below that is cancelled stops its tasks, too") {
  for (const int deep : {1, 2, 3}) {
    bool stopped = false;
    {
      pool workers{{.threads = 2}};
      strand lowest{workers.executor()}, middle{lowest.executor()}, top{middle.executor()};
      strand& one = deep == 1 ? lowest : deep == 2 ? middle : top;
      std::latch begun{1};
      auto never_ends = [&]() -> task<> {
        co_await weft::yield();
        begun.count_down();
        for (;;) co_await weft::yield();
      };
      weft::start(one, never_ends(), [&](weft::result<void> r) { stopped = r.is_stopped(); });
      begun.wait();
      EXPECT_EQ(workers.stats().live, 1) << deep;
      workers.shutdown(weft::pool_shutdown::cancel);
      EXPECT_EQ(workers.stats().live, 0) << deep;
    }
    EXPECT_TRUE(stopped) << deep;
  }
  co_return;
}

class strand_misuse : public testing::Test {
 protected:
  strand_misuse() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(strand_misuse, destroyed_with_jobs_inside) {
  const auto too_early = [] {
    weft::manual_executor loop;
    work one{[] {}};
    strand full{loop};
    full.post(one);
  };
  EXPECT_DEATH(too_early(), "weft: a strand was destroyed with jobs inside");
}

TEST_F(strand_misuse, destroyed_by_a_job_with_others_behind_it) {
  const auto too_early = [] {
    weft::manual_executor loop;
    auto full = std::make_unique<strand>(loop);
    work first{[&] { full.reset(); }}, second{[] {}};
    full->post(first);
    full->post(second);
    loop.run_all();
  };
  EXPECT_DEATH(too_early(), "weft: a strand was destroyed with jobs inside");
}

// Whose turn it is has taken both: the queue is empty, and the second one has not run.
TEST_F(strand_misuse, destroyed_between_two_jobs_that_were_taken_together) {
  const auto destroys = [] {
    const pool workers{{.threads = 1}};
    auto one = std::make_unique<strand>(workers.executor());
    std::latch all_posted{1}, begun{1};
    work holds_the_worker{[&] { all_posted.wait(); }};
    work first{[&] {
      begun.count_down();
      test::until([] { return false; });
    }};
    work second{[] {}};
    workers.executor().post(holds_the_worker);
    one->post(first);
    one->post(second);
    all_posted.count_down();
    begun.wait();
    one.reset();
  };
  EXPECT_DEATH(destroys(), "weft: a strand was destroyed with jobs inside");
}

}  // namespace
